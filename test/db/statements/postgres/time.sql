-- serviceTime
select service_time() as now
