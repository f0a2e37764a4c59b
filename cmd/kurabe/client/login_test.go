package client

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/logkey"
)

// What was saved as a login is read as it was, in the form of either engine.
func TestSavedPassword(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		for _, password := range []string{"simple", `back\slash:colon`, `\\two`, `ends\`, "spaces in it "} {
			f := Flags{Data: t.TempDir()}
			t.Setenv("XDG_CONFIG_HOME", f.Data)
			i := types.DBInstance{DBInstanceIdentifier: aws.String("shop"), Engine: aws.String(engine), MasterUsername: aws.String("master")}
			if _, found := f.SavedPassword(i); found {
				t.Fatal("a password is found before one is saved")
			}
			if _, err := f.SaveLogin(i, logkey.Secret(password)); err != nil {
				t.Fatal(err)
			}
			got, found := f.SavedPassword(i)
			if !found || got.Reveal() != password {
				t.Errorf("%s: %q is read as %q, %v", engine, password, got.Reveal(), found)
			}
		}
	}
}
