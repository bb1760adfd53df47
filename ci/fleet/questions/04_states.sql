-- What the threads did during the outermost slices of at least 10 ms: nanoseconds in each state.
with slow as (
  select service, trace, tid, id, start, start + duration as ending
  from slice
  where depth = 0 and duration >= 10000000
),
part as (
  select sched.service as service, sched.state as state, slow.trace as trace, slow.id as id,
    sum(least(sched.start + sched.duration, slow.ending) - greatest(sched.start, slow.start)) as time_in
  from sched
  join slow on sched.service = slow.service and sched.trace = slow.trace and sched.tid = slow.tid
  where sched.start < slow.ending and sched.start + sched.duration > slow.start
  group by sched.service, sched.state, slow.trace, slow.id
)
select service, state, count(*) as slices, sum(time_in) as ns
from part
group by service, state
order by service, state
