-- How many flows reach how many processes, for each service.
with touched as (
  select service, trace, flow, slice_out as slice_id from flow
  union all
  select service, trace, flow, slice_in as slice_id from flow
),
fan as (
  select slice.service as service, slice.trace as trace, touched.flow as flow,
    count(distinct slice.process) as processes
  from slice
  join touched on slice.service = touched.service and slice.trace = touched.trace and slice.id = touched.slice_id
  group by slice.service, slice.trace, touched.flow
)
select service, processes, count(*) as flows
from fan
group by service, processes
order by service, processes
