package lab

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kurabe/lab/study"
	"kurabe/lab/target"
)

// A study is asked of the first of its engines that the service has, in the version that
// was asked for.
func TestEngineOfAService(t *testing.T) {
	has := map[string]string{"mariadb": "10.11.19"}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := has[r.FormValue("Engine")]
		if wish := r.FormValue("EngineVersion"); wish != "" && !strings.HasPrefix(version, wish) {
			version = ""
		}
		list := ""
		if version != "" {
			list = "<DBEngineVersion><EngineVersion>" + version + "</EngineVersion></DBEngineVersion>"
		}
		fmt.Fprintf(w, "<DescribeDBEngineVersionsResponse><DescribeDBEngineVersionsResult><DBEngineVersions>%s</DBEngineVersions></DescribeDBEngineVersionsResult></DescribeDBEngineVersionsResponse>", list)
	}))
	defer service.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, c := range []struct {
		engines       []string
		version, want string // "" when there is none
	}{
		{[]string{study.MariaDB, study.Postgres}, "", study.MariaDB},
		{[]string{study.Postgres, study.MariaDB}, "", study.MariaDB},
		{[]string{study.Postgres, study.MariaDB}, "10.11", study.MariaDB},
		{[]string{study.Postgres, study.MariaDB}, "11.4", ""},
		{[]string{study.Postgres}, "", ""},
	} {
		var f targetFlags
		command := &cobra.Command{}
		f.add(command)
		if err := command.ParseFlags([]string{"--target", "kurabe", "--endpoint", service.URL, "--engine-version", c.version}); err != nil {
			t.Fatal(err)
		}
		p, err := f.place()
		if err != nil || p.kind != target.KindKurabe {
			t.Fatalf("%+v, %v", p, err)
		}
		engine, err := f.engine(t.Context(), p, &study.Study{Name: "both", Engines: c.engines})
		if engine != c.want || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "the service at "+service.URL+" has none of them") {
			t.Errorf("%v in version %q: %q, %v", c.engines, c.version, engine, err)
		}
	}
}
