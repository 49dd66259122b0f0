-- Every request carries a key nobody used before. Arguments: a prefix that is unique to this sample.
local sent = 0
local head, tail

function init(args)
  wrk.method = "POST"
  wrk.body = '{"item":"book","qty":1}'
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Idempotency-Key"] = args[1] .. "-@"
  -- Cutting one formatted request at the key is much cheaper than formatting each request.
  head, tail = wrk.format():match("^(.-)@(.*)$")
end

function request()
  sent = sent + 1
  return head .. sent .. tail
end

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "summary.lua")
