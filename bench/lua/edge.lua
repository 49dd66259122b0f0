-- One POST after another, told by its arguments: the name and the value of a header that says who
-- calls, then nothing, or "new" and a prefix for keys nobody used before, or "old", the prefix of
-- finished keys and their number.
local sent, number, requests = 0, 0, {}
local head, tail

function init(args)
  wrk.method = "POST"
  wrk.body = '{"item":"book","qty":1}'
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers[args[1]] = args[2]
  if args[3] == "new" then
    wrk.headers["Idempotency-Key"] = args[4] .. "-@"
    -- Cutting one formatted request at the key is much cheaper than formatting each request.
    head, tail = wrk.format():match("^(.-)@(.*)$")
    return
  end
  number = tonumber(args[5] or "1")
  for each = 1, number do
    if args[3] == "old" then
      wrk.headers["Idempotency-Key"] = args[4] .. "-" .. each
    end
    requests[each] = wrk.format()
  end
end

function request()
  sent = sent + 1
  if head then
    return head .. sent .. tail
  end
  return requests[sent % number + 1]
end

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "summary.lua")
