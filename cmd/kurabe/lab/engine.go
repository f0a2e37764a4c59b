package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/service"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// engine is the one that a study is asked of when the user names none: the server's own
// behind a URL, else the first of the study that there is.
func (f *targetFlags) engine(ctx context.Context, p place, s *study.Study) (string, error) {
	switch p.kind {
	case target.KindURL:
		return urlEngine(ctx, p, s), nil
	case target.KindRDS:
		return s.Engines[0], nil // Amazon has all that a study can name
	case target.KindKurabe:
		c, err := f.client.Client()
		if err != nil {
			return "", err
		}
		return firstEngine(s, "the service at "+f.client.Endpoint+" has", func(engine string) (bool, error) {
			return f.offered(ctx, c, engine)
		})
	}
	return firstEngine(s, "this machine has", func(engine string) (bool, error) { return installed(ctx, engine) })
}

// firstEngine is the first of a study's engines that there is.
func firstEngine(s *study.Study, where string, has func(engine string) (bool, error)) (string, error) {
	for _, engine := range s.Engines {
		ok, err := has(engine)
		if err != nil {
			return "", err
		}
		if ok {
			return engine, nil
		}
	}
	return "", fmt.Errorf("the study %s is for %s, and %s none of them: install one, or name another place with --target", s.Name, strings.Join(s.Engines, ", "), where)
}

// offered asks a service for an engine.
func (f *targetFlags) offered(ctx context.Context, c *client.Client, engine string) (bool, error) {
	in := &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine)}
	if f.options.EngineVersion != "" {
		in.EngineVersion = aws.String(f.options.EngineVersion)
	}
	out, err := c.DescribeDBEngineVersions(ctx, in)
	if err != nil {
		return false, client.Friendly(err)
	}
	return len(out.DBEngineVersions) > 0, nil
}

// installed says whether a service of our own would find an engine here.
func installed(ctx context.Context, engine string) (found bool, failure error) {
	// The name is one that kurabe lab clean removes when its process is gone.
	dir, err := os.MkdirTemp("", fmt.Sprintf("kurabe-lab-%d-", os.Getpid()))
	if err != nil {
		return false, fmt.Errorf("look for engines: %w", err)
	}
	defer func() { failure = errors.Join(failure, os.RemoveAll(dir)) }()
	return service.HasEngine(ctx, dir, engine)
}

// urlEngine is the engine of the server that a URL names. Many call a MariaDB mysql://,
// so the server is asked; of one that does not answer the URL's word is taken, and the
// run says why.
func urlEngine(ctx context.Context, p place, s *study.Study) string {
	if about, err := target.Ask(ctx, p.address, p.options); err == nil {
		return about.Engine
	}
	scheme, _, _ := strings.Cut(p.address, "://")
	switch scheme {
	case "mariadb":
		return study.MariaDB
	case "mysql":
		return study.MySQL
	case "postgres", "postgresql":
		return study.Postgres
	}
	return s.Engines[0]
}
