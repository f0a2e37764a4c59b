package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/logkey"
	"kurabe/internal/service"
	"kurabe/internal/volume"
)

// A login file lets psql or mariadb in without a password on the command line,
// as people keep one in ~/.pgpass. It belongs to the client: the service keeps
// no password.

// loginDir is where the login files are: in the service's data folder when it is
// on this machine, else in the user's configuration.
func (f Flags) loginDir() string {
	if _, err := os.Stat(filepath.Join(f.Data, service.CredentialsFile)); err == nil {
		return filepath.Join(f.Data, "logins")
	}
	base, err := os.UserConfigDir()
	if err != nil {
		base = "."
	}
	return filepath.Join(base, "kurabe", "logins")
}

// LoginFile is the path of the login file of an instance.
func (f Flags) LoginFile(i types.DBInstance) string {
	suffix := ".pgpass"
	if aws.ToString(i.Engine) == "mariadb" {
		suffix = ".cnf"
	}
	return filepath.Join(f.loginDir(), aws.ToString(i.DBInstanceIdentifier)+suffix)
}

// SaveLogin writes a login file for the master user.
func (f Flags) SaveLogin(i types.DBInstance, password logkey.Secret) (string, error) {
	path := f.LoginFile(i)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	user := aws.ToString(i.MasterUsername)
	text := fmt.Sprintf("[client]\nuser=%s\npassword=\"%s\"\n", user, strings.ReplaceAll(password.Reveal(), `\`, `\\`))
	if aws.ToString(i.Engine) != "mariadb" {
		escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`)
		text = fmt.Sprintf("*:*:*:%s:%s\n", user, escape.Replace(password.Reveal()))
	}
	return path, volume.AtomicWrite(path, []byte(text), 0o600)
}

// SavedPassword is the master user's, where a login file of ours has it.
func (f Flags) SavedPassword(i types.DBInstance) (logkey.Secret, bool) {
	data, err := os.ReadFile(f.LoginFile(i))
	if err != nil {
		return "", false
	}
	head, escaped, end := "*:*:*:"+aws.ToString(i.MasterUsername)+":", strings.NewReplacer(`\\`, `\`, `\:`, `:`), ""
	if aws.ToString(i.Engine) == "mariadb" {
		head, escaped, end = `password="`, strings.NewReplacer(`\\`, `\`), `"`
	}
	for line := range strings.Lines(string(data)) {
		if text, ours := strings.CutPrefix(strings.TrimRight(line, "\n"), head); ours {
			return logkey.Secret(escaped.Replace(strings.TrimSuffix(text, end))), true
		}
	}
	return "", false
}

// shellCommand is the client's command line, for people to paste.
func (f Flags) shellCommand(i types.DBInstance) string {
	argv, env := f.ClientCommand(i)
	return strings.Join(append(env, quoteAll(argv)...), " ")
}

func quoteAll(argv []string) []string {
	out := make([]string, len(argv))
	for n, a := range argv {
		out[n] = a
		if strings.ContainsAny(a, " '\"$&;") {
			out[n] = `"` + a + `"`
		}
	}
	return out
}

// ClientCommand is how to open psql or mariadb on an instance.
func (f Flags) ClientCommand(i types.DBInstance) (argv, env []string) {
	login := f.LoginFile(i)
	_, err := os.Stat(login)
	saved := err == nil
	ca := filepath.Join(f.Data, "ca.pem")
	_, err = os.Stat(ca)
	hasCA := err == nil
	host, port := aws.ToString(i.Endpoint.Address), fmt.Sprint(aws.ToInt32(i.Endpoint.Port))
	user, database := aws.ToString(i.MasterUsername), aws.ToString(i.DBName)
	if aws.ToString(i.Engine) == "mariadb" {
		argv = []string{"mariadb"}
		if saved {
			argv = append(argv, "--defaults-extra-file="+login)
		}
		argv = append(argv, "-h", host, "-P", port, "-u", user)
		if !saved {
			argv = append(argv, "-p")
		}
		if hasCA {
			argv = append(argv, "--ssl-ca="+ca, "--ssl-verify-server-cert")
		}
		if database != "" {
			argv = append(argv, database)
		}
		return argv, nil
	}
	if database == "" {
		database = "postgres"
	}
	conn := fmt.Sprintf("host=%s port=%s user=%s dbname=%s", host, port, user, database)
	if hasCA {
		conn += " sslmode=verify-full sslrootcert=" + ca
	}
	if saved {
		env = []string{"PGPASSFILE=" + login}
	}
	return []string{"psql", conn}, env
}
