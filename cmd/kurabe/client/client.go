package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"kurabe"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/logkey"
	"kurabe/internal/service"
)

// Defaults of a service on one machine.
const (
	DefaultData   = "./.kurabe"
	DefaultListen = "127.0.0.1:7380"
	DefaultRegion = "us-east-1"
)

// Flags tell a client command where the service is and who asks.
type Flags struct{ Endpoint, Data, Region string }

// Add adds the flags to a command.
func (f *Flags) Add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.Endpoint, "endpoint", EnvOr("KURABE_ENDPOINT", "http://"+DefaultListen), "URL of the service (KURABE_ENDPOINT)")
	fs.StringVar(&f.Data, "data", EnvOr("KURABE_DATA", DefaultData), "data folder of the service, for its credentials (KURABE_DATA)")
	fs.StringVar(&f.Region, "region", EnvOr("AWS_REGION", EnvOr("AWS_DEFAULT_REGION", DefaultRegion)), "region of the service")
}

// EnvOr is the value of an environment variable, otherwise where it is empty.
func EnvOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// Client speaks the public API.
type Client struct {
	*rds.Client
	Flags Flags
	creds aws.Credentials
}

// Client takes the credentials of the environment, else those in the data folder of the service.
func (f Flags) Client() (*Client, error) {
	who := service.Credentials{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: logkey.Secret(os.Getenv("AWS_SECRET_ACCESS_KEY"))}
	if who.AccessKey == "" || who.Secret == "" {
		var err error
		if who, err = service.ReadCredentials(filepath.Join(f.Data, service.CredentialsFile)); err != nil {
			return nil, fmt.Errorf("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name the service's data folder with --data (%w)", err)
		}
	}
	return f.ClientAs(who), nil
}

// ClientAs is a client with these credentials.
func (f Flags) ClientAs(who service.Credentials) *Client {
	creds := aws.Credentials{AccessKeyID: who.AccessKey, SecretAccessKey: who.Secret.Reveal()}
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return creds, nil })
	return &Client{Flags: f, creds: creds, Client: rds.New(rds.Options{
		Region: f.Region, BaseEndpoint: aws.String(f.Endpoint), Credentials: provider, HTTPClient: sdkhttp.Client(),
	})}
}

// Friendly cuts an SDK error down to what a person needs.
func Friendly(err error) error {
	var apiError smithy.APIError
	if errors.As(err, &apiError) {
		return Refusal{apiError}
	}
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return fmt.Errorf("no service answers at %s (%w); start one with \"kurabe run\" or name it with --endpoint", urlError.URL, urlError.Err)
	}
	return err
}

// Refusal is what the API answered, as a person reads it.
type Refusal struct{ smithy.APIError }

func (r Refusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }
func (r Refusal) Unwrap() error { return r.APIError }

// Find returns one instance.
func (c *Client) Find(ctx context.Context, name string) (types.DBInstance, error) {
	out, err := c.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	if err != nil {
		return types.DBInstance{}, Friendly(err)
	}
	if len(out.DBInstances) == 0 {
		return types.DBInstance{}, fmt.Errorf("there is no DB instance %q", name)
	}
	return out.DBInstances[0], nil
}

// answerBytesMax: a snapshot takes 200 bytes of an answer.
const answerBytesMax = 16 << 20

// Ask calls an action of the service "kurabe". It never returns nil: after an error, what it
// returns is empty.
func Ask[Out any](ctx context.Context, c *Client, action string, in any) (*Out, error) {
	return AskService[Out](ctx, c, JSONService{"kurabe", ownapi.Target, "1.1"}, action, in)
}

// JSONService is a service that speaks AWS's JSON: the name that requests are signed for, the
// target before its actions, and the protocol's version.
type JSONService struct{ Name, Target, Version string }

// AskService is Ask of any service.
func AskService[Out any](ctx context.Context, c *Client, s JSONService, action string, in any) (*Out, error) {
	out := new(Out)
	body := []byte("{}")
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return out, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Flags.Endpoint, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-"+s.Version)
	r.Header.Set("X-Amz-Target", s.Target+"."+action)
	var answer bytes.Buffer
	if err := c.send(r, body, s.Name, &answer, answerBytesMax); err != nil {
		return out, err
	}
	if err := json.Unmarshal(answer.Bytes(), out); err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", action, err)
	}
	return out, nil
}

// Fetch writes the answer at a path of the service to out, up to a size.
func (c *Client) Fetch(ctx context.Context, path string, out io.Writer, bytesMax int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Flags.Endpoint+path, http.NoBody)
	if err != nil {
		return err
	}
	return c.send(r, nil, "rds", out, bytesMax)
}

// send signs a request for a service, and writes what it answers to out.
func (c *Client) send(r *http.Request, body []byte, signedFor string, out io.Writer, bytesMax int64) error {
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), c.creds, r, hex.EncodeToString(hash[:]), signedFor, c.Flags.Region, time.Now()); err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return Friendly(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		_, err := io.Copy(out, io.LimitReader(response.Body, bytesMax))
		return err
	}
	said, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return err
	}
	var e struct {
		Code    string `json:"__type"`
		Message string
		Error   struct{ Code, Message string } // of a path, in XML
	}
	if json.Unmarshal(said, &e) == nil && e.Code != "" {
		return Refused{e.Code, e.Message, said}
	}
	if xml.Unmarshal(said, &e) == nil && e.Error.Code != "" {
		return fmt.Errorf("%s: %s", e.Error.Code, e.Error.Message)
	}
	return fmt.Errorf("the service answers %s", response.Status)
}

// Refused is the error of a service that speaks JSON. Body has its further members.
type Refused struct {
	Code, Message string
	Body          []byte
}

func (r Refused) Error() string { return r.Code + ": " + r.Message }

// WaitFor shows progress until done says so. Progress is one line that changes
// on a terminal, and one line for each new status elsewhere.
func (c *Client) WaitFor(ctx context.Context, name string, done func(types.DBInstance, error) (bool, error)) error {
	shown, cluster := kurabe.CutNameKey(name)
	p := NewProgress(os.Stderr, shown)
	defer p.End()
	look := c.Find
	if cluster {
		look = c.FindDatabase
	}
	for {
		i, err := look(ctx, name)
		p.Show(aws.ToString(i.DBInstanceStatus))
		if finished, err := done(i, err); finished || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(PollEvery):
		}
	}
}

// PollEvery is how often a waiting command asks: often enough that nobody waits
// for the poll.
const PollEvery = 200 * time.Millisecond
