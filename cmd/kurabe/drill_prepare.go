package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/internal/drill"
	"kurabe/internal/logkey"
	"kurabe/internal/pulse"
	"kurabe/internal/volume"
)

// prepare refuses what cannot be rehearsed; it changes nothing.
func (f *drillFlags) prepare(ctx context.Context, name string, order drill.Order) (*drill.Drill, types.DBInstance, error) {
	c, err := f.Client()
	if err != nil {
		return nil, types.DBInstance{}, err
	}
	i, reads, err := findDrill(ctx, c, name)
	if err != nil {
		return nil, i, err
	}
	if err := drillable(i); err != nil {
		return nil, i, err
	}
	key := aws.ToString(i.DBInstanceIdentifier)
	_, order.Cluster = kurabe.CutNameKey(key)
	data, host, err := f.hostHere()
	if err != nil {
		return nil, i, err
	}
	user, database := aws.ToString(i.MasterUsername), aws.ToString(i.DBName)
	if f.user != "" {
		user = f.user
	}
	if f.database != "" {
		database = f.database
	}
	if database == "" && aws.ToString(i.Engine) == "postgres" { // others have sessions without one
		database = "postgres"
	}
	if err := c.Resolve(ctx, &i); err != nil {
		return nil, i, err
	}
	if reads, err = c.AddressOf(ctx, reads); err != nil {
		return nil, i, err
	}
	address, _ := netip.ParseAddr(aws.ToString(i.Endpoint.Address)) // a name is no address of a server
	d := &drill.Drill{
		Instance: name, Engine: aws.ToString(i.Engine), Order: order, Service: drillService{c, key, address}, Timeout: f.timeout,
		Login: pulse.Login{
			Engine: aws.ToString(i.Engine), Address: aws.ToString(i.Endpoint.Address), Port: int(aws.ToInt32(i.Endpoint.Port)),
			User: user, Database: database, CAFile: filepath.Join(data, "ca.pem"),
		},
		Data: data, Host: host, Guard: drill.GuardCommand,
	}
	if reads != "" {
		d.Reads = d.Login
		d.Reads.Address = reads
	}
	_, err = d.Check(ctx)
	return d, i, err
}

// findDrill finds what a drill is of, and the reader endpoint of a cluster, "" of an instance.
func findDrill(ctx context.Context, c *client.Client, name string) (i types.DBInstance, reads string, err error) {
	if i, err = c.FindDatabase(ctx, name); err != nil {
		return i, "", err
	}
	cluster, isCluster := kurabe.CutNameKey(aws.ToString(i.DBInstanceIdentifier))
	if !isCluster {
		return i, "", nil
	}
	address, _, err := readerEndpoint(ctx, c, cluster)
	return i, aws.ToString(address), err
}

// drillable refuses an instance by what the API tells of it.
func drillable(i types.DBInstance) error {
	name, status, of := aws.ToString(i.DBInstanceIdentifier), aws.ToString(i.DBInstanceStatus), aws.ToString(i.DBClusterIdentifier)
	_, cluster := kurabe.CutNameKey(name)
	switch {
	case of != "":
		return fmt.Errorf("InvalidDBInstanceState: %s is a server of the DB cluster %s; rehearse with that, and name the writer or a reader: kurabe drill %s --kill reader", name, of, of)
	case !drill.Knows(aws.ToString(i.Engine)):
		return fmt.Errorf("%s is %s; drills are for %s", name, aws.ToString(i.Engine), strings.Join(drill.Engines(), ", "))
	case status != "available" || i.Endpoint == nil:
		return fmt.Errorf("InvalidDBInstanceState: %s is %s; a drill needs it to be available", name, status)
	case !cluster && !aws.ToBool(i.MultiAZ):
		return fmt.Errorf("InvalidDBInstanceState: %s is in one zone, so no server can take over. Give it a standby, which takes no restart: aws rds modify-db-instance --db-instance-identifier %s --multi-az --apply-immediately", name, name)
	}
	return nil
}

// hostHere is what this machine is called in the data folder, which must be a service's.
func (f *drillFlags) hostHere() (data string, host kurabe.HostID, err error) {
	if data, err = volume.Resolve(f.Data); err != nil {
		return data, "", err
	}
	raw, err := os.ReadFile(filepath.Join(data, "host.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return data, "", fmt.Errorf("%s is no data folder of a service: name it with --data, on the machine that the service runs on", data)
	case errors.Is(err, fs.ErrPermission):
		return data, "", fmt.Errorf("the data folder cannot be read: run the drill as root, or as the user that the service runs as (%w)", err)
	case err != nil:
		return data, "", err
	}
	var h struct {
		ID kurabe.HostID `json:"id"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return data, "", fmt.Errorf("read %s: %w", filepath.Join(data, "host.json"), err)
	}
	return data, h.ID, nil
}

// password never comes by an argument, which everybody on the machine can read.
func (f *drillFlags) password(i types.DBInstance) (logkey.Secret, error) {
	usual := "PGPASSWORD"
	if aws.ToString(i.Engine) == "mariadb" {
		usual = "MYSQL_PWD"
	}
	for _, name := range []string{"KURABE_DRILL_PASSWORD", usual} {
		if password := os.Getenv(name); password != "" {
			os.Unsetenv(name) // no child process needs it
			return logkey.Secret(password), nil
		}
	}
	user := aws.ToString(i.MasterUsername)
	if f.user != "" && f.user != user {
		user = f.user
	} else if password, ok := f.SavedPassword(i); ok {
		return password, nil
	}
	password, err := client.ReadPassword(fmt.Sprintf("Password of %s: ", user))
	if errors.Is(err, client.ErrNoTerminal) {
		return "", fmt.Errorf("the password of %s is not known: set KURABE_DRILL_PASSWORD, or run the drill in a terminal", user)
	}
	return password, err
}
