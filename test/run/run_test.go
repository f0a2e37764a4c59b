package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestConsumeCounts(t *testing.T) {
	cases := []struct {
		name   string
		events string
		want   total
	}{
		{"leaves count, parents do not", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"run","Package":"p","Test":"TestA/two"}
{"Action":"skip","Package":"p","Test":"TestA/two"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, total{1, 0, 1}},
		{"a failed child is one failure", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, total{0, 1, 0}},
		{"a parent that fails by itself counts", `
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, total{1, 1, 0}},
		{"a test that never ended has failed", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"panic: x\n"}
{"Action":"fail","Package":"p"}`, total{1, 1, 0}},
		{"a package that does not build is one failure", `
{"ImportPath":"p","Action":"build-output","Output":"syntax error\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`, total{0, 1, 0}},
		{"a cut off run has failed", `
{"Action":"run","Package":"p","Test":"TestA"}`, total{0, 1, 0}},
		{"a fuzz target is one test, whatever its seeds", `
{"Action":"run","Package":"p","Test":"FuzzA"}
{"Action":"run","Package":"p","Test":"FuzzA/seed#0"}
{"Action":"pass","Package":"p","Test":"FuzzA/seed#0"}
{"Action":"run","Package":"p","Test":"FuzzA/seed#1"}
{"Action":"pass","Package":"p","Test":"FuzzA/seed#1"}
{"Action":"pass","Package":"p","Test":"FuzzA"}
{"Action":"pass","Package":"p"}`, total{1, 0, 0}},
		{"a package without tests is nothing", `
{"Action":"skip","Package":"p"}`, total{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &runner{out: io.Discard}
			got, err := r.consume(strings.NewReader(c.events))
			if err != nil || got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestSkipsNameTheirReason(t *testing.T) {
	r := &runner{out: io.Discard}
	_, err := r.consume(strings.NewReader(`
{"Action":"run","Package":"kurabe/p","Test":"TestA"}
{"Action":"output","Package":"kurabe/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"kurabe/p","Test":"TestA","Output":"    a_test.go:3: needs root\n"}
{"Action":"output","Package":"kurabe/p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"kurabe/p","Test":"TestA"}
{"Action":"pass","Package":"kurabe/p"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"p TestA: a_test.go:3: needs root"}; !slices.Equal(r.skips, want) {
		t.Errorf("skips = %q, want %q", r.skips, want)
	}
}

func TestFindTagged(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"a/a_test.go":      "package a\nfunc TestPlain() {}\n",
		"a/b_test.go":      "// Licence.\n\n//go:build integration && linux\n\npackage a\nfunc TestReal() {}\nfunc TestMain() {}\nfunc helper() {}\n",
		"b/c_test.go":      "//go:build integration || fault\n\npackage b\nfunc TestBoth() {}\n",
		"c/d_test.go":      "//go:build !integration\n\npackage c\nfunc TestOther() {}\n",
		".cache/e_test.go": "//go:build integration\n\npackage e\nfunc TestHidden() {}\n",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := findTagged(root, "integration")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := found.pattern(), "^(TestBoth|TestReal)$"; got != want {
		t.Errorf("pattern = %s, want %s", got, want)
	}
	if got, want := found.packages(), []string{"./a", "./b"}; !slices.Equal(got, want) {
		t.Errorf("packages = %s, want %s", got, want)
	}
}

func TestReadJUnit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.xml")
	report := `<testsuites><testsuite name="pytest" tests="4">
<testcase classname="m" name="good"/>
<testcase classname="m" name="bad"><failure message="x"/></testcase>
<testcase classname="m" name="broken"><error message="x"/></testcase>
<testcase classname="m" name="later"><skipped message="no terraform"/></testcase>
</testsuite></testsuites>`
	if err := os.WriteFile(path, []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	got, failures, skips, err := readJUnit(path)
	if want := (total{1, 2, 1}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if failures["m.py"] != 2 {
		t.Errorf("failures = %v, want two in m.py", failures)
	}
	if want := []string{"m later: no terraform"}; !slices.Equal(skips, want) {
		t.Errorf("skips = %q, want %q", skips, want)
	}
}

func TestChooseKeepsTheOrder(t *testing.T) {
	got, err := choose([]string{"lint", "unit"})
	if err != nil || len(got) != 2 || got[0].name != "unit" || got[1].name != "lint" {
		t.Errorf("chose %v, %v", got, err)
	}
	if _, err := choose([]string{"units"}); err == nil {
		t.Error("an unknown suite was accepted")
	}
}

// TestFailuresAreRepeated: the last that a failed test said of places in the code, with
// what its servers logged behind that.
func TestFailuresAreRepeated(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out}
	_, err := r.consume(strings.NewReader(`
{"Action":"output","Package":"kurabe/p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"kurabe/p","Test":"TestA/one","Output":"    a_test.go:5: it does not\n"}
{"Action":"output","Package":"kurabe/p","Test":"TestA/one","Output":"        level=INFO msg=planned\n"}
{"Action":"output","Package":"kurabe/p","Test":"TestA/one","Output":"    service.go:98: what is left\n"}
{"Action":"fail","Package":"kurabe/p","Test":"TestA/one"}
{"Action":"fail","Package":"kurabe/p","Test":"TestA"}
{"Action":"output","Package":"kurabe/p","Test":"TestB","Output":"    a_test.go:9: fine\n"}
{"Action":"pass","Package":"kurabe/p","Test":"TestB"}
{"Action":"fail","Package":"kurabe/p"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"failed: p TestA/one", "  a_test.go:5: it does not", "  service.go:98: what is left"}; !slices.Equal(r.failures, want) {
		t.Errorf("%q, want %q", r.failures, want)
	}
	if want := "FAIL p TestA/one: a_test.go:5: it does not\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the output ends with %q, want %q", out.String(), want)
	}
}

func TestShorten(t *testing.T) {
	var lines []string
	for i := range maxHeadLines + maxTailLines + 1 {
		lines = append(lines, strconv.Itoa(i))
	}
	if got := shorten(lines); !slices.Equal(got, lines) {
		t.Errorf("%q: one line fewer is no gain", got)
	}
	got := shorten(append(lines, "last"))
	if len(got) != maxHeadLines+maxTailLines+1 || got[0] != "0" || got[maxHeadLines] != "    … 2 lines" || got[len(got)-1] != "last" {
		t.Errorf("%q", got)
	}
}

// Lanes run at the same time, the suites of one in order, and nothing of any is lost.
func TestTogether(t *testing.T) {
	var out bytes.Buffer
	meet := make(chan struct{})
	a := suite{name: "a", lane: 1, run: func(r *runner, _ context.Context) (total, error) {
		fmt.Fprintln(r.out, "of a")
		r.skips, r.failures = append(r.skips, "a skips"), append(r.failures, "a fails")
		meet <- struct{}{}
		return total{passed: 1, failed: 1}, nil
	}}
	metB := false
	b := suite{name: "b", lane: 2, run: func(r *runner, _ context.Context) (total, error) {
		<-meet
		metB = true
		if _, is := r.out.(io.ReaderFrom); is {
			t.Error("what a program prints is read into the buffer of a suite beside what that prints itself")
		}
		fmt.Fprintln(r.out, "of b")
		r.skips = append(r.skips, "b skips")
		return total{passed: 2, skipped: 1}, nil
	}}
	c := suite{name: "c", lane: 2, run: func(r *runner, _ context.Context) (total, error) {
		if !metB || !strings.Contains(out.String(), "of b") {
			t.Error("the second suite of a lane begins before the first has ended and said so")
		}
		return total{passed: 4}, nil
	}}
	none := suite{name: "none", lane: 2, run: func(*runner, context.Context) (total, error) { return total{}, errAbsent }}
	first := suite{name: "first", lane: 0}
	alone, beside := lanes([]suite{first, b, a, c, none})
	if len(alone) != 1 || alone[0].name != "first" || len(beside) != 2 || len(beside[0]) != 1 || len(beside[1]) != 3 {
		t.Fatalf("alone %v, lanes %v", alone, beside)
	}
	r := &runner{out: &out}
	all, lines := r.together(t.Context(), beside)
	if all != (total{passed: 7, failed: 1, skipped: 1}) || len(lines) != 3 || !strings.Contains(out.String(), "of a") {
		t.Errorf("%v, %q, %q", all, lines, out.String())
	}
	if !slices.Equal(r.skips, []string{"a skips", "b skips"}) || !slices.Equal(r.failures, []string{"a fails"}) {
		t.Errorf("%q %q", r.skips, r.failures)
	}
}

// Each test behind the tag is in one suite, and in one only.
func TestLabIsApart(t *testing.T) {
	found := taggedTests{"./lab/load": {"TestStall"}, "./test/integration": {"TestLabAlter", "TestHosts"}, "./internal/engine/a": {"TestA"}, "./internal/engineer": {"TestE"}}
	lab := found.only(isLab)
	engines := found.only(isEngine)
	rest := found.only(func(folder, test string) bool { return !isLab(folder, test) && !isEngine(folder, test) })
	if got := lab.packages(); !slices.Equal(got, []string{"./lab/load", "./test/integration"}) || lab.pattern() != "^(TestLabAlter|TestStall)$" {
		t.Errorf("lab: %q, %s", got, lab.pattern())
	}
	if got := engines.packages(); !slices.Equal(got, []string{"./internal/engine/a"}) || engines.pattern() != "^(TestA)$" {
		t.Errorf("engines: %q, %s", got, engines.pattern())
	}
	if got := rest.packages(); !slices.Equal(got, []string{"./internal/engineer", "./test/integration"}) || rest.pattern() != "^(TestE|TestHosts)$" {
		t.Errorf("rest: %q, %s", got, rest.pattern())
	}
}
