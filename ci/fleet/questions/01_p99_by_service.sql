-- The p99 of each name of each service: the smallest duration that at least 99 of 100 slices do not exceed.
with counted as (
  select service, name, duration, count(*) as n
  from slice
  where duration is not null
  group by service, name, duration
),
ranked as (
  select service, name, duration,
    sum(n) over (partition by service, name order by duration
                 rows between unbounded preceding and current row) as upto,
    sum(n) over (partition by service, name) as slices
  from counted
)
select service, name, max(slices) as total, min(duration) as p99
from ranked
where upto * 100 >= slices * 99
group by service, name
order by service, name
