select category, name, count(*) as slices, sum(duration) as total, sum(self_time) as self_total,
  min(duration) as shortest, {p50} as p50, {p99} as p99, max(duration) as longest
from slice
where duration is not null
group by category, name
order by total desc, category, name
