package target

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"kurabe/lab/dial"
	"kurabe/lab/study"
)

// addressBytesMax bounds a URL.
const addressBytesMax = 4096

// errAddress never holds the URL, which may hold a password.
var errAddress = errors.New("the target's URL is not of the form postgres://USER[:PASSWORD]@HOST[:PORT]/[DATABASE] (or mysql, mariadb); letters such as @ and / in a password are written %40 and %2F")

// parseAddress reads the URL of a server. A password that is not in it is looked for by
// findPassword.
func parseAddress(text string) (dial.Server, error) {
	if len(text) > addressBytesMax {
		return dial.Server{}, errAddress
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User == nil || u.User.Username() == "" || u.Hostname() == "" || u.Fragment != "" {
		return dial.Server{}, errAddress
	}
	s := dial.Server{Host: u.Hostname(), User: u.User.Username(), Database: strings.TrimPrefix(u.Path, "/")}
	if password, ok := u.User.Password(); ok {
		s.Password = dial.Secret(password)
	}
	switch strings.ToLower(u.Scheme) {
	case "postgres", "postgresql":
		s.Engine, s.Port = study.Postgres, 5432
	case "mysql":
		s.Engine, s.Port = study.MySQL, 3306
	case "mariadb":
		s.Engine, s.Port = study.MariaDB, 3306
	default:
		return dial.Server{}, errAddress
	}
	if strings.ContainsAny(s.Database, "/\x00") || strings.ContainsRune(s.User, 0) || strings.ContainsRune(string(s.Password), 0) {
		return dial.Server{}, errAddress
	}
	if port := u.Port(); port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return dial.Server{}, errAddress
		}
		s.Port = int(number)
	}
	s.TLS, err = wantsTLS(u.RawQuery)
	return s, err
}

// wantsTLS reads what follows the question mark.
func wantsTLS(raw string) (bool, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return false, errAddress
	}
	tls := false
	for _, key := range sortedKeys(query) {
		values := query[key]
		switch value := values[len(values)-1]; {
		case key == "sslmode" && (value == "disable" || value == "allow" || value == "prefer"), key == "tls" && value == "false":
			tls = false
		case key == "sslmode" && value == "require", key == "tls" && (value == "true" || value == "skip-verify"):
			tls = true
		case key == "sslmode" && (value == "verify-ca" || value == "verify-full"):
			return false, errors.New("the target's URL asks to verify who the server is, which the lab does not do: use sslmode=require")
		default:
			return false, errors.New("the target's URL may say sslmode=disable, sslmode=require or tls=true after the question mark, and nothing else")
		}
	}
	return tls, nil
}

// passwordBytesMax bounds a file with a password.
const passwordBytesMax = 4096

// findPassword looks in a file and then where the engine's own programs look.
func findPassword(s *dial.Server, file string) error {
	switch {
	case s.Password != "":
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the password of the target: %w", err)
		}
		if len(data) > passwordBytesMax {
			return fmt.Errorf("read the password of the target: %s is longer than %d bytes", file, passwordBytesMax)
		}
		s.Password = dial.Secret(strings.TrimRight(string(data), "\r\n"))
	case s.Engine == study.Postgres:
		s.Password = dial.Secret(os.Getenv("PGPASSWORD"))
	default:
		s.Password = dial.Secret(os.Getenv("MYSQL_PWD"))
	}
	return nil
}
