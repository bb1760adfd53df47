with slow as (
  select service, trace, track, id, name, start, duration
  from slice
  where depth = 0 and duration is not null
  order by duration desc, service, trace, id
  limit 100
)
select slow.service as service, slow.trace as trace, slow.id as id, slow.name as name,
  slow.duration as duration, part.depth as inner_depth, part.category as inner_category,
  part.name as inner_name, count(*) as inner_slices,
  sum(part.self_time) as inner_self, sum(part.running) as inner_running, sum(part.waiting) as inner_waiting
from slice as part
join slow on part.service = slow.service and part.trace = slow.trace and part.track = slow.track
where part.start >= slow.start and part.start + part.duration <= slow.start + slow.duration
group by slow.service, slow.trace, slow.id, slow.name, slow.duration, part.depth, part.category, part.name
order by duration desc, service, trace, id, inner_self desc, inner_depth, inner_category, inner_name
