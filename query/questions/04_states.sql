-- What the threads did during the outermost slices of at least 10 ms: nanoseconds in each state.
with slow as (
  select trace, tid, id, start, start + duration as ending
  from slice
  where depth = 0 and duration >= 10000000
)
select sched.service as service, sched.state as state, count(distinct slow.id) as slices,
  sum(least(sched.start + sched.duration, slow.ending) - greatest(sched.start, slow.start)) as ns
from sched
join slow on sched.trace = slow.trace and sched.tid = slow.tid
where sched.start < slow.ending and sched.start + sched.duration > slow.start
group by sched.service, sched.state
order by service, state
