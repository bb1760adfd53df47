-- Which traces lack events, and with which build: what is said about them is not the whole truth.
with build as (
  select service, trace, max(text_value) as version
  from arg
  where of = 'instant' and flat_key = 'version'
  group by service, trace
)
select trace.service as service, trace.trace as trace, build.version as version,
  trace.lost_events as lost_events
from trace
left join build on trace.service = build.service and trace.trace = build.trace
where trace.lost_events > 0 or not trace.is_whole
order by service, trace
