-- wrk: POST of a body as large as one alert's.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = string.rep("x", 600)
