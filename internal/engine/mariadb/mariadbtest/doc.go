// Package mariadbtest has the instances that tests of the packages of MariaDB begin with.
package mariadbtest
