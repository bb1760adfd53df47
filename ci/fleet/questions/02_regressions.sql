-- What takes at least a fifth longer in build 1.5.0 than in 1.4.0, by the p99 of each name of each service.
with build as (
  select service, trace, max(text_value) as version
  from arg
  where of = 'instant' and flat_key = 'version'
  group by service, trace
),
counted as (
  select slice.service as service, slice.name as name, build.version as version, slice.duration as duration,
    count(*) as n
  from slice
  join build on slice.service = build.service and slice.trace = build.trace
  where slice.duration is not null
  group by slice.service, slice.name, build.version, slice.duration
),
ranked as (
  select service, name, version, duration,
    sum(n) over (partition by service, name, version order by duration
                 rows between unbounded preceding and current row) as upto,
    sum(n) over (partition by service, name, version) as slices
  from counted
)
select service, name,
  min(case when version = '1.4.0' then duration end) as old_p99,
  min(case when version = '1.5.0' then duration end) as new_p99
from ranked
where upto * 100 >= slices * 99
group by service, name
having min(case when version = '1.5.0' then duration end) * 100
  >= min(case when version = '1.4.0' then duration end) * 120
order by service, name
