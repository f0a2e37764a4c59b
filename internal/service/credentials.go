package service

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
const CredentialsFile = "credentials"

type Credentials struct {
	AccessKey string
	Secret    logkey.Secret
}

// rootCredentials returns those of the environment, else those of the data
// folder, which are made at the first start.
func rootCredentials(data string) (Credentials, error) {
	key, secret := os.Getenv("KURABE_ROOT_ACCESS_KEY"), os.Getenv("KURABE_ROOT_SECRET_KEY")
	os.Unsetenv("KURABE_ROOT_SECRET_KEY") // no child process needs it
	if (key == "") != (secret == "") {
		return Credentials{}, errors.New("set both KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY, or neither")
	}
	if key != "" {
		return Credentials{key, logkey.Secret(secret)}, nil
	}
	c, err := ReadCredentials(filepath.Join(data, CredentialsFile))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	var id [10]byte
	var random [30]byte
	rand.Read(id[:]) // never fails
	rand.Read(random[:])
	c = Credentials{"AKIA" + base32.StdEncoding.EncodeToString(id[:]), logkey.Secret(base64.StdEncoding.EncodeToString(random[:]))}
	return c, c.save(data)
}

func (c Credentials) save(data string) error {
	text := "[default]\naws_access_key_id = " + c.AccessKey + "\naws_secret_access_key = " + c.Secret.Reveal() + "\n"
	return volume.AtomicWrite(filepath.Join(data, CredentialsFile), []byte(text), 0o600)
}

// readCredentials reads the first profile of a shared-credentials file.
func ReadCredentials(path string) (Credentials, error) {
	f, err := os.Open(path)
	if err != nil {
		return Credentials{}, err
	}
	defer f.Close()
	var c Credentials
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			c.AccessKey = strings.TrimSpace(value)
		case "aws_secret_access_key":
			c.Secret = logkey.Secret(strings.TrimSpace(value))
		}
	}
	if err := lines.Err(); err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	if c.AccessKey == "" || c.Secret == "" {
		return c, fmt.Errorf("%s does not hold aws_access_key_id and aws_secret_access_key", path)
	}
	return c, nil
}
