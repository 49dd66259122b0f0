-- One line of JSON at the end: counts, seconds, and latency in milliseconds.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
