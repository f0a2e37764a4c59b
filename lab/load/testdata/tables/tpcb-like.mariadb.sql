CREATE TABLE pgbench_branches (bid integer NOT NULL, bbalance integer, filler char(88), PRIMARY KEY (bid)) ENGINE=InnoDB;
(1,0,NULL),(2,0,NULL)
ANALYZE TABLE pgbench_branches;
CREATE TABLE pgbench_tellers (tid integer NOT NULL, bid integer, tbalance integer, filler char(84), PRIMARY KEY (tid)) ENGINE=InnoDB;
(1,1,0,NULL),(2,1,0,NULL),(3,1,0,NULL)
ANALYZE TABLE pgbench_tellers;
CREATE TABLE pgbench_accounts (aid integer NOT NULL, bid integer, abalance integer, filler char(84), PRIMARY KEY (aid)) ENGINE=InnoDB;
(1,1,0,''),(2,1,0,''),(3,1,0,'')
ANALYZE TABLE pgbench_accounts;
CREATE TABLE pgbench_history (tid integer, bid integer, aid integer, delta integer, mtime datetime, filler char(22)) ENGINE=InnoDB;

ANALYZE TABLE pgbench_history;
