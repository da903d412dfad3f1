// policyhealth SCRIPT: reads an object as JSON, and prints what GitOps tools make of it: the status that Flux and kubectl
// compute (kstatus), and the health that Argo CD has from the Lua script, which runs as Argo CD runs it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "policyhealth:", err)
		os.Exit(1)
	}
}

// As decodeValue of argo-cd/util/lua.
func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	case nil:
		return lua.LNil
	}
	panic(fmt.Sprintf("%T in an object", value))
}

// Argo CD opens these libraries, and gives a script one second.
func health(script string, object map[string]any) (string, string) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		must(state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	deadline, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(deadline)
	state.SetGlobal("obj", toLua(state, object))
	must(state.DoString(script))
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		must(fmt.Errorf("the script returned %s, not a table", state.Get(-1).Type()))
	}
	return lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))
}

func main() {
	script, err := os.ReadFile(os.Args[1])
	must(err)
	var object unstructured.Unstructured
	must(json.NewDecoder(os.Stdin).Decode(&object))
	result, err := status.Compute(&object)
	must(err)
	argo, message := health(string(script), object.Object)
	must(json.NewEncoder(os.Stdout).Encode(map[string]string{
		"kstatus": result.Status.String(), "kstatus_message": result.Message, "argo": argo, "argo_message": message,
	}))
}
