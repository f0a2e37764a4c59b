//go:build integration

package integration

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kurabe/internal/harness"
)

// amazon stands for Amazon's service: it refuses everything, and notes the regions that
// it was asked in.
type amazon struct {
	*httptest.Server

	mu      sync.Mutex // guards regions
	regions []string
}

func newAmazon(t *testing.T) *amazon {
	t.Helper()
	a := &amazon{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Credential=KEY/DATE/REGION/rds/aws4_request
		scope := strings.Split(r.Header.Get("Authorization"), "/")
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(scope) > 2 {
			a.regions = append(a.regions, scope[2])
		}
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error><RequestId>1</RequestId></ErrorResponse>`))
	}))
	t.Cleanup(a.Close)
	return a
}

// asked are the regions since the last time.
func (a *amazon) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.regions = nil }()
	return strings.Join(a.regions, " ")
}

// command is the lab's, of a user of Amazon's with a configuration.
func (a *amazon) command(t *testing.T, dir, config string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := labCommand(t, dir, args...)
	var env []string
	for _, e := range c.Env {
		if !strings.HasPrefix(e, "AWS_") {
			env = append(env, e)
		}
	}
	c.Env = append(env, "AWS_CONFIG_FILE="+path, "AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(dir, "none"), "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=AKIDOFATEST", "AWS_SECRET_ACCESS_KEY=secret", "AWS_MAX_ATTEMPTS=1", "AWS_ENDPOINT_URL_RDS="+a.URL)
	return c
}

// Instances are made where the user's configuration says, and nowhere when nothing does.
func TestLabRegionOfAmazon(t *testing.T) {
	a := newAmazon(t)
	dir := shortIn(t)
	const frankfurt = "[default]\nregion = eu-central-1\n"
	for _, c := range []struct {
		name, config, env string
		args              []string
		want              string
	}{
		{"of the configuration", frankfurt, "", nil, "eu-central-1"},
		{"of the environment", frankfurt, "AWS_REGION=eu-west-3", nil, "eu-west-3"},
		{"of the older variable", "", "AWS_DEFAULT_REGION=eu-west-1", nil, "eu-west-1"},
		{"of the flag", frankfurt, "AWS_REGION=eu-west-3", []string{"--region", "us-west-2"}, "us-west-2"},
		{"none", "[default]\n", "", nil, ""},
	} {
		for _, command := range [][]string{{"run", "short.yaml", "--target", "rds"}, {"clean", "--target", "rds"}} {
			t.Run(c.name+", "+command[0], func(t *testing.T) {
				cmd := a.command(t, dir, c.config, append(command, c.args...)...)
				if c.env != "" {
					cmd.Env = append(cmd.Env, c.env)
				}
				out := labFails(t, cmd)
				asked := strings.Fields(a.asked())
				if c.want == "" {
					if len(asked) > 0 || !strings.Contains(out, "no region is set") {
						t.Errorf("asked in %v: %s", asked, out)
					}
					return
				}
				for _, region := range asked {
					if region != c.want {
						t.Errorf("asked in %s, want %s", region, c.want)
					}
				}
				if len(asked) == 0 {
					t.Errorf("nobody was asked: %s", out)
				}
			})
		}
	}
}

// A target that is none leads nowhere, least of all to Amazon's.
func TestLabTargetMistyped(t *testing.T) {
	a := newAmazon(t)
	dir := shortIn(t)
	for _, command := range [][]string{{"run", "short.yaml"}, {"clean"}} {
		for _, name := range []string{"kurab", "RDS", "postgres"} {
			out := labFails(t, a.command(t, dir, "[default]\nregion = eu-central-1\n", append(command, "--target", name)...))
			if asked := a.asked(); asked != "" || !strings.Contains(out, `--target "`+name+`" is none of kurabe, rds, private`) {
				t.Errorf("%s --target %s: asked in %s: %s", command[0], name, asked, out)
			}
		}
	}
	// The stand-in is one: what is meant for Amazon reaches it.
	labFails(t, a.command(t, dir, "[default]\nregion = eu-central-1\n", "clean", "--target", "rds"))
	if a.asked() == "" {
		t.Error("nothing reaches what stands for Amazon's service")
	}
}

// On a machine with one engine a study for both is asked of that one.
func TestLabTakesTheEngineThatThereIs(t *testing.T) {
	if !harness.Root() {
		t.Skip("only root can hide an engine")
	}
	dir := shortIn(t)
	for _, c := range []struct{ name, hide, want string }{
		{"without PostgreSQL", "mount -t tmpfs none /usr/lib/postgresql", "short, asked of mariadb\n"},
		{"without MariaDB", "mount -t tmpfs none /usr/sbin", "short, asked of postgres\n"},
		{"without both", "mount -t tmpfs none /usr/lib/postgresql && mount -t tmpfs none /usr/sbin", "the study short is for postgres, mariadb, and this machine has none of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"/usr/lib/postgresql", "/usr/sbin/mariadbd"} {
				if _, err := os.Stat(path); err != nil {
					t.Skip(err)
				}
			}
			plain := labCommand(t, dir, "run", "short.yaml", "--target", "private", "--dry-run")
			script := append([]string{"--mount", "sh", "-c", c.hide + ` && exec "$0" "$@"`}, plain.Args...)
			cmd := exec.Command("unshare", script...)
			cmd.Dir, cmd.Env = plain.Dir, plain.Env
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), c.want) || (err == nil) != strings.HasPrefix(c.want, "short") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	leftOnly(t, dir, "short.yaml")
}
