CREATE TABLE pgbench_branches (bid integer NOT NULL, bbalance integer, filler char(88));
1	0	\N
2	0	\N

ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid);
VACUUM ANALYZE pgbench_branches;
CREATE TABLE pgbench_tellers (tid integer NOT NULL, bid integer, tbalance integer, filler char(84));
1	1	0	\N
2	1	0	\N
3	1	0	\N

ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid);
VACUUM ANALYZE pgbench_tellers;
CREATE TABLE pgbench_accounts (aid integer NOT NULL, bid integer, abalance integer, filler char(84));
1	1	0	
2	1	0	
3	1	0	

ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
VACUUM ANALYZE pgbench_accounts;
CREATE TABLE pgbench_history (tid integer, bid integer, aid integer, delta integer, mtime timestamp, filler char(22));

VACUUM ANALYZE pgbench_history;
