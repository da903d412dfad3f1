// Go's net/http for http_compare.py, in the manner of echo_server.c: answers each request with what it understood,
// "METHOD target" in X-Request and the body. Prints its port; ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
)

func echo(answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		answer.Header().Set("Connection", "close")
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	answer.Header().Set("X-Request", request.Method+" "+request.RequestURI)
	answer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	answer.Write(body)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go http.Serve(listener, http.HandlerFunc(echo))
	io.Copy(io.Discard, os.Stdin)
}
