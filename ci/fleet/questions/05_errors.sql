-- The rate of failed requests of each service and build, in failures per million.
with build as (
  select service, trace, max(text_value) as version
  from arg
  where of = 'instant' and flat_key = 'version'
  group by service, trace
)
select arg.service as service, build.version as version, count(*) as requests,
  sum(case when arg.int_value >= 500 then 1 else 0 end) as failures,
  cast(floor(sum(case when arg.int_value >= 500 then 1 else 0 end) * 1e6 / count(*)) as bigint) as per_million
from arg
join build on arg.service = build.service and arg.trace = build.trace
where arg.of = 'slice' and arg.flat_key = 'status'
group by arg.service, build.version
order by service, version
