select service, trace, category, name, duration, self_time, running, waiting, process_name, thread_name,
  start, id
from slice
where duration is not null
order by duration desc, service, trace, id
limit 100
