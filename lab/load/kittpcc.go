package load

import (
	"fmt"
	"strings"

	"kurabe/lab/study"
)

// Sizes of a warehouse. TPC-C has 3,000 customers a district and 100,000 items; a tenth
// of it keeps a laptop's data in memory.
const (
	tpccDistricts = 10
	tpccCustomers = 300 // a district
	tpccItems     = 10_000
	tpccLines     = 10 // of an order; TPC-C draws 5 to 15
)

// tpccLike is modelled on the two most frequent transactions of TPC-C, new-order and
// payment, 45 to 43. It is not TPC-C and its figures compare with none that is: no think
// times, no other transactions, no remote warehouses, a fixed number of lines, no
// customers by last name, less data. What it keeps is the shape of the work: a counter
// that all orders of a district wait for, and reads, updates and inserts in one
// transaction of 26 statements.
func tpccLike() []transaction { return []transaction{{45, tpccNewOrder()}, {43, tpccPayment}} }

func tpccNewOrder() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\\set w random(1, :scale)\n\\set d random(1, %d)\n\\set c random(1, %d)\n", tpccDistricts, tpccCustomers)
	// Items come from ranges that ascend, so that two orders lock stock in the same order.
	// TPC-C sorts by nothing and lives with deadlocks.
	const span = tpccItems / tpccLines
	for n := range tpccLines {
		fmt.Fprintf(&b, "\\set i%d random(%d, %d)\n\\set q%d random(1, 10)\n", n, n*span+1, (n+1)*span, n)
	}
	b.WriteString(`BEGIN;
SELECT tax FROM lab_tpcc_warehouse WHERE w_id = :w;
SELECT discount, last_name, credit FROM lab_tpcc_customer WHERE w_id = :w AND d_id = :d AND c_id = :c;
UPDATE lab_tpcc_district SET next_o_id = next_o_id + 1 WHERE w_id = :w AND d_id = :d;
INSERT INTO lab_tpcc_orders (w_id, d_id, o_id, c_id, entered, line_count) SELECT d.w_id, d.d_id, d.next_o_id - 1, c.c_id, CURRENT_TIMESTAMP, 10 FROM lab_tpcc_district d JOIN lab_tpcc_customer c ON c.w_id = d.w_id AND c.d_id = d.d_id WHERE d.w_id = :w AND d.d_id = :d AND c.c_id = :c;
INSERT INTO lab_tpcc_new_order (w_id, d_id, o_id) SELECT w_id, d_id, next_o_id - 1 FROM lab_tpcc_district WHERE w_id = :w AND d_id = :d;
`)
	for n := range tpccLines {
		fmt.Fprintf(&b, `UPDATE lab_tpcc_stock SET quantity = CASE WHEN quantity >= :q%[1]d + 10 THEN quantity - :q%[1]d ELSE quantity + 91 - :q%[1]d END, ytd = ytd + :q%[1]d, order_count = order_count + 1 WHERE w_id = :w AND i_id = :i%[1]d;
INSERT INTO lab_tpcc_order_line (w_id, d_id, o_id, line, i_id, quantity, amount) SELECT d.w_id, d.d_id, d.next_o_id - 1, %[2]d, i.i_id, 0 + :q%[1]d, i.price * :q%[1]d FROM lab_tpcc_district d, lab_tpcc_item i WHERE d.w_id = :w AND d.d_id = :d AND i.i_id = :i%[1]d;
`, n, n+1)
	}
	return b.String() + "COMMIT;\n"
}

const tpccPayment = `
\set w random(1, :scale)
\set d random(1, 10)
\set c random(1, 300)
\set amount random(1, 5000)
BEGIN;
UPDATE lab_tpcc_warehouse SET ytd = ytd + :amount WHERE w_id = :w;
UPDATE lab_tpcc_district SET ytd = ytd + :amount WHERE w_id = :w AND d_id = :d;
UPDATE lab_tpcc_customer SET balance = balance - :amount, payment_count = payment_count + 1 WHERE w_id = :w AND d_id = :d AND c_id = :c;
INSERT INTO lab_tpcc_history (w_id, d_id, c_id, paid, amount) VALUES (:w, :d, :c, CURRENT_TIMESTAMP, :amount);
COMMIT;
`

func tpccTables(w study.Workload) []table {
	warehouses := int64(w.Scale)
	districts := warehouses * tpccDistricts
	return []table{
		{name: "lab_tpcc_warehouse", columns: "w_id integer NOT NULL, tax numeric(4,4) NOT NULL, ytd numeric(14,2) NOT NULL", key: "w_id", rows: warehouses,
			fill: func(r *row, n int64) { r.integer(n + 1); r.text("0.0725"); r.integer(0) }},
		{name: "lab_tpcc_district", columns: "w_id integer NOT NULL, d_id integer NOT NULL, next_o_id integer NOT NULL, ytd numeric(14,2) NOT NULL", key: "w_id, d_id", rows: districts,
			fill: func(r *row, n int64) {
				r.integer(n/tpccDistricts + 1)
				r.integer(n%tpccDistricts + 1)
				r.integer(1)
				r.integer(0)
			}},
		{name: "lab_tpcc_customer", columns: "w_id integer NOT NULL, d_id integer NOT NULL, c_id integer NOT NULL, discount numeric(4,4) NOT NULL, credit char(2) NOT NULL, last_name varchar(16) NOT NULL, balance numeric(14,2) NOT NULL, payment_count integer NOT NULL, data varchar(200) NOT NULL",
			key: "w_id, d_id, c_id", rows: districts * tpccCustomers,
			fill: func(r *row, n int64) {
				d := n / tpccCustomers
				r.integer(d/tpccDistricts + 1)
				r.integer(d%tpccDistricts + 1)
				r.integer(n%tpccCustomers + 1)
				r.text("0.0500")
				r.text("GC")
				r.text("NAME" + fmt.Sprint(n%1000))
				r.integer(-10)
				r.integer(1)
				r.digits(200)
			}},
		{name: "lab_tpcc_item", columns: "i_id integer NOT NULL, price numeric(6,2) NOT NULL, item_name varchar(24) NOT NULL", key: "i_id", rows: tpccItems,
			fill: func(r *row, n int64) { r.integer(n + 1); r.integer(n%100 + 1); r.digits(24) }},
		{name: "lab_tpcc_stock", columns: "w_id integer NOT NULL, i_id integer NOT NULL, quantity integer NOT NULL, ytd integer NOT NULL, order_count integer NOT NULL, data varchar(50) NOT NULL", key: "w_id, i_id", rows: warehouses * tpccItems,
			fill: func(r *row, n int64) {
				r.integer(n/tpccItems + 1)
				r.integer(n%tpccItems + 1)
				r.integer(10 + n%91)
				r.integer(0)
				r.integer(0)
				r.digits(50)
			}},
		{name: "lab_tpcc_orders", columns: "w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL, c_id integer NOT NULL, entered {time} NOT NULL, line_count integer NOT NULL", key: "w_id, d_id, o_id", grows: true},
		{name: "lab_tpcc_new_order", columns: "w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL", key: "w_id, d_id, o_id", grows: true},
		{name: "lab_tpcc_order_line", columns: "w_id integer NOT NULL, d_id integer NOT NULL, o_id integer NOT NULL, line integer NOT NULL, i_id integer NOT NULL, quantity integer NOT NULL, amount numeric(8,2) NOT NULL", key: "w_id, d_id, o_id, line", grows: true},
		{name: "lab_tpcc_history", columns: "w_id integer NOT NULL, d_id integer NOT NULL, c_id integer NOT NULL, paid {time} NOT NULL, amount numeric(8,2) NOT NULL", grows: true},
	}
}
