package main

import (
	"bytes"
	"context"
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
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/logkey"
)

// clientFlags tell a client command where the service is and who asks.
type clientFlags struct{ endpoint, data, region string }

func (f *clientFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.endpoint, "endpoint", envOr("KURABE_ENDPOINT", "http://"+defaultListen), "URL of the service (KURABE_ENDPOINT)")
	fs.StringVar(&f.data, "data", envOr("KURABE_DATA", defaultData), "data folder of the service, for its credentials (KURABE_DATA)")
	fs.StringVar(&f.region, "region", envOr("AWS_REGION", envOr("AWS_DEFAULT_REGION", defaultRegion)), "region of the service")
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// client speaks the public API.
type client struct {
	*rds.Client
	flags clientFlags
	creds aws.Credentials
}

func (f clientFlags) client() (*client, error) {
	who := credentials{os.Getenv("AWS_ACCESS_KEY_ID"), logkey.Secret(os.Getenv("AWS_SECRET_ACCESS_KEY"))}
	if who.accessKey == "" || who.secret == "" {
		var err error
		if who, err = readCredentials(filepath.Join(f.data, credentialsFile)); err != nil {
			return nil, fmt.Errorf("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name the service's data folder with --data (%w)", err)
		}
	}
	return f.clientAs(who), nil
}

func (f clientFlags) clientAs(who credentials) *client {
	creds := aws.Credentials{AccessKeyID: who.accessKey, SecretAccessKey: who.secret.Reveal()}
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return creds, nil })
	return &client{flags: f, creds: creds, Client: rds.New(rds.Options{
		Region: f.region, BaseEndpoint: aws.String(f.endpoint), Credentials: provider, HTTPClient: sdkhttp.Client(),
	})}
}

// friendly cuts an SDK error down to what a person needs.
func friendly(err error) error {
	var apiError smithy.APIError
	if errors.As(err, &apiError) {
		return refusal{apiError}
	}
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return fmt.Errorf("no service answers at %s (%w); start one with \"kurabe run\" or name it with --endpoint", urlError.URL, urlError.Err)
	}
	return err
}

// refusal is what the API answered, as a person reads it.
type refusal struct{ smithy.APIError }

func (r refusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }
func (r refusal) Unwrap() error { return r.APIError }

// find returns one instance.
func (c *client) find(ctx context.Context, name string) (types.DBInstance, error) {
	out, err := c.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(name)})
	if err != nil {
		return types.DBInstance{}, friendly(err)
	}
	if len(out.DBInstances) == 0 {
		return types.DBInstance{}, fmt.Errorf("there is no DB instance %q", name)
	}
	return out.DBInstances[0], nil
}

// get asks for one of Kurabe's own pages.
func (c *client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.ask(ctx, http.MethodGet, path, query)
}

// post asks the service to do something that is Kurabe's own.
func (c *client) post(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.ask(ctx, http.MethodPost, path, query)
}

// answerBytesMax: a snapshot takes 200 bytes of an answer.
const answerBytesMax = 16 << 20

// ask sends a signed request without a body, and returns the answer's.
func (c *client) ask(ctx context.Context, method, path string, query url.Values) ([]byte, error) {
	var body bytes.Buffer
	err := c.fetch(ctx, method, path, query, &body, answerBytesMax)
	return body.Bytes(), err
}

// fetch is ask for an answer that is written to out, up to a size.
func (c *client) fetch(ctx context.Context, method, path string, query url.Values, out io.Writer, bytesMax int64) error {
	r, err := http.NewRequestWithContext(ctx, method, c.flags.endpoint+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if err := v4.NewSigner().SignHTTP(ctx, c.creds, r, emptyHash, "rds", c.flags.region, time.Now()); err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return friendly(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		_, err := io.Copy(out, io.LimitReader(response.Body, bytesMax))
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return err
	}
	var e struct {
		Error struct{ Code, Message string }
	}
	if xml.Unmarshal(body, &e) == nil && e.Error.Code != "" {
		return fmt.Errorf("%s: %s", e.Error.Code, e.Error.Message)
	}
	return fmt.Errorf("the service answers %s", response.Status)
}

// waitFor shows progress until done says so. Progress is one line that changes
// on a terminal, and one line for each new status elsewhere.
func (c *client) waitFor(ctx context.Context, name string, done func(types.DBInstance, error) (bool, error)) error {
	shown, cluster := kurabe.CutNameKey(name)
	p := newProgress(os.Stderr, shown)
	defer p.end()
	look := c.find
	if cluster {
		look = c.findDatabase
	}
	for {
		i, err := look(ctx, name)
		p.show(aws.ToString(i.DBInstanceStatus))
		if finished, err := done(i, err); finished || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// pollEvery is how often a waiting command asks: often enough that nobody waits
// for the poll.
const pollEvery = 200 * time.Millisecond
