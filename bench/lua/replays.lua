-- Every request repeats one of a fixed set of finished keys. Arguments: their prefix, their number.
local next_request, requests = 0, {}

function init(args)
  wrk.method = "POST"
  wrk.body = '{"item":"book","qty":1}'
  wrk.headers["Content-Type"] = "application/json"
  for number = 1, tonumber(args[2]) do
    wrk.headers["Idempotency-Key"] = args[1] .. "-" .. number
    requests[number] = wrk.format()
  end
end

function request()
  next_request = next_request % #requests + 1
  return requests[next_request]
end

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "summary.lua")
