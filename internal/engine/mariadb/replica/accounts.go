package replica

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// Rights of the two kinds of accounts. The master user has each of them.
const (
	memberRights = "REPLICATION SLAVE, BINLOG MONITOR"
	lookRights   = "SLAVE MONITOR, BINLOG MONITOR"
)

// Followers implements engine.Driver: an account for each follower, and one by which
// this server's host looks at them. They are made by logged statements, so that all members
// have the same ones: a user's statement that names one then does the same everywhere.
// What a follower that is away has not received is bounded (binlog/bound.go).
func (r *Roles) Followers(ctx context.Context, i engine.Instance) error {
	if i.Role == nil {
		return nil
	}
	err := guard.With(ctx, i, func(a *guard.Session) error {
		statements, err := accountSQL(i)
		if err != nil {
			return err
		}
		if role.Follows(i) {
			// What it logged itself its source would not have. Who follows it is cloned of it
			// afterwards, and has the accounts by that; those of others are its source's.
			return a.ExecAll(ctx, statements...)
		}
		left, err := leftAccounts(ctx, a, i)
		if err != nil {
			return err
		}
		for _, name := range left {
			statements = append(statements, "DROP USER IF EXISTS "+sqltext.Account(name))
		}
		if len(statements) > 0 {
			err = ExecLogged(ctx, a, i, statements...)
		}
		for _, name := range left {
			// One that has come in already stays in without its account.
			err = errors.Join(err, a.Exec(ctx, "KILL HARD CONNECTION USER "+sqltext.Account(name)))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("accounts of followers: %w", err)
	}
	return nil
}

// accountSQL makes the accounts, or makes of one that is there what it must be.
func accountSQL(i engine.Instance) ([]string, error) {
	if len(i.Role.Followers) == 0 {
		return nil, nil
	}
	issuer, err := issuerName(filepath.Join(i.Home.TLSDir(), door.AuthorityFile))
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, id := range i.Role.Followers {
		statements = append(statements, madeSQL(role.MemberName(id),
			" IDENTIFIED VIA "+door.NativePlugin+" USING '' REQUIRE SUBJECT "+sqltext.Literal("/CN="+string(id))+" AND ISSUER "+sqltext.Literal(issuer), memberRights)...)
	}
	password, err := keepLookPassword(i)
	if err != nil {
		return nil, err
	}
	verifier, err := door.Verifier(password)
	if err != nil {
		return nil, err
	}
	return append(statements, madeSQL(role.LookName(i.Instance),
		" IDENTIFIED VIA "+door.NativePlugin+" USING "+sqltext.Literal(verifier)+" REQUIRE SSL", lookRights)...), nil
}

func madeSQL(name, how, rights string) []string {
	who := sqltext.Account(name)
	// A group's default_password_lifetime is for users.
	how += " ACCOUNT UNLOCK PASSWORD EXPIRE NEVER"
	return []string{
		"CREATE USER IF NOT EXISTS " + who + how,
		"ALTER USER " + who + how,
		"GRANT " + rights + " ON *.* TO " + who,
	}
}

// leftAccounts are those of members that are none any more, and of a former writer.
func leftAccounts(ctx context.Context, a *guard.Session, i engine.Instance) ([]string, error) {
	var wanted []string
	for _, id := range i.Role.Followers {
		wanted = append(wanted, role.MemberName(id))
	}
	if len(i.Role.Followers) > 0 {
		wanted = append(wanted, role.LookName(i.Instance))
	}
	rows, err := a.Query(ctx, "SELECT User FROM mysql.global_priv WHERE Host = '%' AND User LIKE 'rds%'")
	if err != nil {
		return nil, err
	}
	var left []string
	for _, row := range rows {
		if role.MemberForm.MatchString(row[0]) && !slices.Contains(wanted, row[0]) {
			left = append(left, row[0])
		}
	}
	return left, nil
}

// lookFile is the service's own, beside the data: the password by which this host looks at
// the followers. They have its verifier only.
func lookFile(h engine.Home) string { return filepath.Join(h.Dir, "look.secret") }

func readLookPassword(h engine.Home) (logkey.Secret, error) {
	text, err := volume.ReadFile(lookFile(h))
	return logkey.Secret(strings.TrimSpace(string(text))), err
}

func keepLookPassword(i engine.Instance) (logkey.Secret, error) {
	password, err := readLookPassword(i.Home)
	if err == nil && password.Reveal() != "" {
		return password, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	password = logkey.Secret(door.RandomHex())
	return password, volume.AtomicWrite(lookFile(i.Home), []byte(password.Reveal()+"\n"), 0o600)
}

// issuerName is the name of the authority as the server compares it with that of a
// certificate: OpenSSL's line form, X509_NAME_oneline.
func issuerName(caFile string) (string, error) {
	text, err := volume.ReadFile(caFile)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", fmt.Errorf("%s holds no certificate", caFile)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", caFile, err)
	}
	return onelineName(c.RawSubject)
}

// nameWords are OpenSSL's short names of what a name can consist of here.
var nameWords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU",
}

func onelineName(der []byte) (string, error) {
	var name pkix.RDNSequence
	if _, err := asn1.Unmarshal(der, &name); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, set := range name {
		for _, part := range set {
			word, known := nameWords[part.Type.String()]
			value, isText := part.Value.(string)
			if !known || !isText || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				return "", fmt.Errorf("the authority's name has a part that is not understood: %s", part.Type)
			}
			b.WriteString("/" + word + "=" + value)
		}
	}
	return b.String(), nil
}

// CopierPrefix begins the names of the accounts that snapshots are taken with. The
// rest is random, so that no name of a user is ever taken for one.
const CopierPrefix = "rdsbackup_"

// DropLeftCopiers looks for the forms of our own names only.
func DropLeftCopiers(ctx context.Context, a *guard.Session) error {
	rows, err := a.Query(ctx, "SELECT User FROM mysql.global_priv WHERE User LIKE "+sqltext.Literal(sqltext.LikeEscapes.Replace(CopierPrefix)+"%"))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !copierForm.MatchString(row[0]) {
			continue
		}
		if err := DropCopier(ctx, a, row[0]); err != nil {
			return err
		}
	}
	return nil
}

var copierForm = regexp.MustCompile(`^` + CopierPrefix + `[0-9a-f]{32}$`)

// DropCopier also ends its sessions: dropping an account does not, and the server
// would stay in a backup stage as long as one lives.
func DropCopier(ctx context.Context, a *guard.Session, name string) error {
	return a.ExecAll(ctx, "KILL HARD CONNECTION USER "+sqltext.Account(name), "DROP USER IF EXISTS "+sqltext.Account(name))
}
