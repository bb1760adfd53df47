-- The routes of requests, from their arguments: how often, how long, and how much of it without a processor.
select arg.text_value as route, count(*) as requests, sum(slice.duration) as total,
  max(slice.duration) as longest, sum(slice.waiting) as waiting_total
from slice
join arg on slice.service = arg.service and slice.trace = arg.trace and slice.id = arg.owner
where arg.of = 'slice' and arg.flat_key = 'route' and slice.depth = 0
group by arg.text_value
order by route
