CREATE TABLE lab_tpcc_warehouse (w_id integer NOT NULL, tax numeric(4,4) NOT NULL, ytd numeric(14,2) NOT NULL, PRIMARY KEY (w_id)) ENGINE=InnoDB;
(1,'0.0725',0),(2,'0.0725',0)
ANALYZE TABLE lab_tpcc_warehouse;
CREATE TABLE lab_tpcc_district (w_id integer NOT NULL, d_id integer NOT NULL, next_o_id integer NOT NULL, ytd numeric(14,2) NOT NULL, PRIMARY KEY (w_id, d_id)) ENGINE=InnoDB;
(1,1,1,0),(1,2,1,0),(1,3,1,0)
ANALYZE TABLE lab_tpcc_district;
CREATE TABLE lab_tpcc_customer (w_id integer NOT NULL, d_id integer NOT NULL, c_id integer NOT NULL, discount numeric(4,4) NOT NULL, credit char(2) NOT NULL, last_name varchar(16) NOT NULL, balance numeric(14,2) NOT NULL, payment_count integer NOT NULL, data varchar(200) NOT NULL, PRIMARY KEY (w_id, d_id, c_id)) ENGINE=InnoDB;
(1,1,1,'0.0500','GC','NAME0',-10,1,'50140151245-67074134838-88100565812-41483712273-32448910135-51839727796-81102948297-26579260530-59067693844-74559889743-24724912538-51897852842-52638528970-88828901400-32542588081-23281577523-49773685'),(1,1,2,'0.0500','GC','NAME1',-10,1,'21745263226-97455395342-98315646963-83523312693-80040375510-37604122232-33315706772-44902529595-26418906773-87392498792-76592122050-05372825540-39829029634-73838498043-24877608263-22561952695-45568094'),(1,1,3,'0.0500','GC','NAME2',-10,1,'78305533840-41241429693-60971732340-84471910247-92181655901-42971475161-27906262985-34253257835-14772769065-51502999726-06788725348-14707057192-19105074183-58882600702-00153370938-79835081556-03932981')
ANALYZE TABLE lab_tpcc_customer;
CREATE TABLE lab_tpcc_item (i_id integer NOT NULL, price numeric(6,2) NOT NULL, item_name varchar(24) NOT NULL, PRIMARY KEY (i_id)) ENGINE=InnoDB;
(1,1,'50140151245-67074134838-'),(2,2,'88100565812-41483712273-'),(3,3,'32448910135-51839727796-')
ANALYZE TABLE lab_tpcc_item;
CREATE TABLE lab_tpcc_stock (w_id integer NOT NULL, i_id integer NOT NULL, quantity integer NOT NULL, ytd integer NOT NULL, order_count integer NOT NULL, data varchar(50) NOT NULL, PRIMARY KEY (w_id, i_id)) ENGINE=InnoDB;
(1,1,10,0,0,'50140151245-67074134838-88100565812-41483712273-32'),(1,2,11,0,0,'44891013551-83972779681-10294829726-57926053059-06'),(1,3,12,0,0,'76938447455-98897432472-49125385189-78528425263-85')
ANALYZE TABLE lab_tpcc_stock;
CREATE TABLE lab_tpcc_orders (w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL, c_id integer NOT NULL, entered datetime NOT NULL, line_count integer NOT NULL, PRIMARY KEY (w_id, d_id, o_id)) ENGINE=InnoDB;

ANALYZE TABLE lab_tpcc_orders;
CREATE TABLE lab_tpcc_new_order (w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL, PRIMARY KEY (w_id, d_id, o_id)) ENGINE=InnoDB;

ANALYZE TABLE lab_tpcc_new_order;
CREATE TABLE lab_tpcc_order_line (w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL, line integer NOT NULL, i_id integer NOT NULL, quantity integer NOT NULL, amount numeric(8,2) NOT NULL, PRIMARY KEY (w_id, d_id, o_id, line)) ENGINE=InnoDB;

ANALYZE TABLE lab_tpcc_order_line;
CREATE TABLE lab_tpcc_history (w_id integer NOT NULL, d_id integer NOT NULL, c_id integer NOT NULL, paid datetime NOT NULL, amount numeric(8,2) NOT NULL) ENGINE=InnoDB;

ANALYZE TABLE lab_tpcc_history;
