package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/service"
	"kurabe/lab/load"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// targetFlags say where a study is run.
type targetFlags struct {
	client  client.Flags
	name    string
	options target.Options
	set     *pflag.FlagSet // to tell a default from what was asked for
}

func (f *targetFlags) add(c *cobra.Command) {
	f.client.Add(c)
	fs := c.Flags()
	f.set = fs
	fs.Lookup("region").Usage += "; for Amazon's the configuration of AWS decides where neither flag nor environment does"
	fs.StringVar(&f.name, "target", "", `where: "kurabe" (the service at --endpoint), "rds" (Amazon's, with its usual credentials), "private" (a service of its own for as long as it takes), or the URL of a server, as postgres://user@host/db (default: the service at --endpoint when it answers, else private)`)
	fs.StringVar(&f.options.PasswordFile, "password-file", "", "file with the password of a URL; else PGPASSWORD or MYSQL_PWD")
	fs.StringVar(&f.options.EngineVersion, "engine-version", "", "version of the engine (default: that of the service)")
	fs.StringVar(&f.options.Class, "class", "", "DB instance class of variants that name none (default: one that suits)")
	fs.StringVar(&f.options.SubnetGroup, "subnet-group", "", "DB subnet group, on Amazon's service")
	fs.StringSliceVar(&f.options.SecurityGroups, "security-groups", nil, "VPC security groups, on Amazon's service")
	fs.BoolVar(&f.options.Public, "public", false, "give instances a public address, on Amazon's service")
}

// aliveTime bounds asking whether a service answers.
const aliveTime = 2 * time.Second

// place is where a study is run, with what it takes to get there.
type place struct {
	kind    string // target.KindKurabe, ...
	address string // of target.KindURL
	options target.Options
}

// place is the only way from --target to a target, for all commands: what it does not
// know it refuses, or a slip of the pen would lead to Amazon's service with the user's
// credentials.
func (f *targetFlags) place() (place, error) {
	p := place{kind: f.name, options: f.options}
	if p.kind == "" {
		p.kind = f.usual()
	}
	p.options.Region = f.client.Region
	switch {
	case strings.Contains(p.kind, "://"):
		p.kind, p.address = target.KindURL, f.name
	case p.kind == target.KindPrivate:
	case p.kind == target.KindKurabe:
		// Without an endpoint a client of the API takes Amazon's.
		if p.options.Endpoint = f.client.Endpoint; p.options.Endpoint == "" {
			return place{}, errors.New("--endpoint is empty: name the URL of the service")
		}
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			p.options.CredentialsFile = filepath.Join(f.client.Data, service.CredentialsFile)
		}
	case p.kind == target.KindRDS:
		// The environment and the user's files are read where the client is made. A default
		// of ours would make instances, and a bill, in a region that nobody chose.
		if !f.set.Changed("region") {
			p.options.Region = ""
		}
	default:
		return place{}, fmt.Errorf("--target%s is none of kurabe, rds, private and the URL of a server", shown(p.kind))
	}
	return p, nil
}

// shown repeats a word of the user, unless it looks like a URL gone wrong, which may hold
// a password.
func shown(word string) string {
	if strings.Contains(word, "@") {
		return ""
	}
	return fmt.Sprintf(" %q", word)
}

// usual is the target when none is named.
func (f *targetFlags) usual() string {
	if _, err := f.client.Client(); err != nil {
		return target.KindPrivate // without credentials there is no asking
	}
	client := http.Client{Timeout: aliveTime}
	answer, err := client.Get(strings.TrimSuffix(f.client.Endpoint, "/") + "/healthz")
	if err != nil {
		return target.KindPrivate
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // only to end it
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return target.KindPrivate
	}
	return target.KindKurabe
}

// check finds what is wrong with a study here that no server has to be asked for, so that
// it costs no start of one.
func (p place) check(s *study.Study) error {
	if err := load.CheckAll(s.Workloads); err != nil {
		return err
	}
	if p.kind != target.KindPrivate {
		return nil
	}
	return target.PrivateRoom(p.options.Folder, s)
}

// open makes the target of a study for an engine.
func (p place) open(ctx context.Context, engine string, step func(string)) (target.Target, error) {
	o := p.options
	o.Engine, o.Step = engine, step
	switch p.kind {
	case target.KindURL:
		return target.URL(ctx, p.address, o)
	case target.KindPrivate:
		return target.Private(ctx, o)
	}
	return target.RDS(ctx, o)
}

// clean removes what runs left there, and what they left on this machine.
func (p place) clean(ctx context.Context) (said []string, failure error) {
	said, err := target.CleanPrivate(ctx, p.options)
	if err != nil {
		return said, err
	}
	var more []string
	switch p.kind {
	case target.KindPrivate:
	case target.KindURL:
		more, err = target.CleanURL(ctx, p.address, p.options)
	default:
		more, err = target.CleanRDS(ctx, p.options)
	}
	return append(said, more...), err
}
