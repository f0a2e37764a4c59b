package shape

import (
	"os/exec"
	"testing"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	python := "python3"
	if venv := "../../../.cache/venv/bin/python"; exec.Command(venv, "-c", "").Run() == nil {
		python = venv // scripts/install.sh test puts the clients there
	}
	if err := exec.Command(python, "-c", "import botocore; assert botocore.__version__ == '1.43.11'").Run(); err != nil {
		t.Skip("needs python3 with botocore 1.43.11")
	}
	if out, err := exec.Command(python, "gen/gen.py", "--check").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
}
