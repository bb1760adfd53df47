-- Where the time of one service went on one day. Only the files of that service and day are read.
select category, name, count(*) as slices, sum(duration) as total, sum(self_time) as self_total
from slice
where service = 'orders' and date = '2026-11-20' and duration is not null
group by category, name
order by self_total desc, category, name
