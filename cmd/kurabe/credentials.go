package main

import (
	"bufio"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// credentialsFile is in AWS's shared-credentials format, so that
// AWS_SHARED_CREDENTIALS_FILE can name it.
const credentialsFile = "credentials"

type credentials struct {
	accessKey string
	secret    logkey.Secret
}

// rootCredentials returns those of the environment, else those of the data
// folder, which are made at the first start.
func rootCredentials(data string) (credentials, error) {
	key, secret := os.Getenv("KURABE_ROOT_ACCESS_KEY"), os.Getenv("KURABE_ROOT_SECRET_KEY")
	os.Unsetenv("KURABE_ROOT_SECRET_KEY") // no child process needs it
	if (key == "") != (secret == "") {
		return credentials{}, errors.New("set both KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY, or neither")
	}
	if key != "" {
		return credentials{key, logkey.Secret(secret)}, nil
	}
	c, err := readCredentials(filepath.Join(data, credentialsFile))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	var id [10]byte
	var random [30]byte
	rand.Read(id[:]) // never fails
	rand.Read(random[:])
	c = credentials{"AKIA" + base32.StdEncoding.EncodeToString(id[:]), logkey.Secret(base64.StdEncoding.EncodeToString(random[:]))}
	return c, c.save(data)
}

func (c credentials) save(data string) error {
	text := "[default]\naws_access_key_id = " + c.accessKey + "\naws_secret_access_key = " + c.secret.Reveal() + "\n"
	return volume.AtomicWrite(filepath.Join(data, credentialsFile), []byte(text), 0o600)
}

// readCredentials reads the first profile of a shared-credentials file.
func readCredentials(path string) (credentials, error) {
	f, err := os.Open(path)
	if err != nil {
		return credentials{}, err
	}
	defer f.Close()
	var c credentials
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			c.accessKey = strings.TrimSpace(value)
		case "aws_secret_access_key":
			c.secret = logkey.Secret(strings.TrimSpace(value))
		}
	}
	if err := lines.Err(); err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	if c.accessKey == "" || c.secret == "" {
		return c, fmt.Errorf("%s does not hold aws_access_key_id and aws_secret_access_key", path)
	}
	return c, nil
}
