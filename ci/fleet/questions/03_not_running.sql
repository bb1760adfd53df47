-- The outermost slices of at least 10 ms that were slow because their thread was not on a processor.
select service, trace, name, duration, running, waiting
from slice
where depth = 0 and duration >= 10000000 and waiting * 2 >= duration
order by service, trace, id
