-- Requests of each service in each hour of the wall clock, and the longest of them.
with request as (
  select slice.service as service, slice.duration as duration, slice.start + trace.since_1970 as wall
  from slice
  join trace on slice.service = trace.service and slice.trace = trace.trace
  where slice.depth = 0 and slice.name = 'request'
)
select service, wall - wall % 3600000000000 as hour, count(*) as requests, max(duration) as longest
from request
group by service, wall - wall % 3600000000000
order by service, hour
