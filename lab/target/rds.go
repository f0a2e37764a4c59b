package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"kurabe/lab/dial"
	"kurabe/lab/owner"
	"kurabe/lab/study"
)

// api is what is used of the RDS API.
type api interface {
	CreateDBInstance(context.Context, *rds.CreateDBInstanceInput, ...func(*rds.Options)) (*rds.CreateDBInstanceOutput, error)
	CreateDBParameterGroup(context.Context, *rds.CreateDBParameterGroupInput, ...func(*rds.Options)) (*rds.CreateDBParameterGroupOutput, error)
	CreateDBSnapshot(context.Context, *rds.CreateDBSnapshotInput, ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error)
	DeleteDBInstance(context.Context, *rds.DeleteDBInstanceInput, ...func(*rds.Options)) (*rds.DeleteDBInstanceOutput, error)
	DeleteDBParameterGroup(context.Context, *rds.DeleteDBParameterGroupInput, ...func(*rds.Options)) (*rds.DeleteDBParameterGroupOutput, error)
	DeleteDBSnapshot(context.Context, *rds.DeleteDBSnapshotInput, ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error)
	DescribeDBEngineVersions(context.Context, *rds.DescribeDBEngineVersionsInput, ...func(*rds.Options)) (*rds.DescribeDBEngineVersionsOutput, error)
	DescribeDBInstances(context.Context, *rds.DescribeDBInstancesInput, ...func(*rds.Options)) (*rds.DescribeDBInstancesOutput, error)
	DescribeDBParameterGroups(context.Context, *rds.DescribeDBParameterGroupsInput, ...func(*rds.Options)) (*rds.DescribeDBParameterGroupsOutput, error)
	DescribeDBSnapshots(context.Context, *rds.DescribeDBSnapshotsInput, ...func(*rds.Options)) (*rds.DescribeDBSnapshotsOutput, error)
	DescribeEngineDefaultParameters(context.Context, *rds.DescribeEngineDefaultParametersInput, ...func(*rds.Options)) (*rds.DescribeEngineDefaultParametersOutput, error)
	DescribeOrderableDBInstanceOptions(context.Context, *rds.DescribeOrderableDBInstanceOptionsInput, ...func(*rds.Options)) (*rds.DescribeOrderableDBInstanceOptionsOutput, error)
	ListTagsForResource(context.Context, *rds.ListTagsForResourceInput, ...func(*rds.Options)) (*rds.ListTagsForResourceOutput, error)
	ModifyDBParameterGroup(context.Context, *rds.ModifyDBParameterGroupInput, ...func(*rds.Options)) (*rds.ModifyDBParameterGroupOutput, error)
	RebootDBInstance(context.Context, *rds.RebootDBInstanceInput, ...func(*rds.Options)) (*rds.RebootDBInstanceOutput, error)
	ResetDBParameterGroup(context.Context, *rds.ResetDBParameterGroupInput, ...func(*rds.Options)) (*rds.ResetDBParameterGroupOutput, error)
	RestoreDBInstanceFromDBSnapshot(context.Context, *rds.RestoreDBInstanceFromDBSnapshotInput, ...func(*rds.Options)) (*rds.RestoreDBInstanceFromDBSnapshotOutput, error)
}

// How often a status is asked for: a service on this network answers in milliseconds;
// Amazon's takes minutes for anything and counts requests.
const (
	pollNear = 100 * time.Millisecond
	pollFar  = 10 * time.Second
)

// availableTime bounds the waiting for one instance or snapshot.
const availableTime = 90 * time.Minute

// pagesMax bounds every list of the API, at a hundred entries a page.
const pagesMax = 1000

// What instances of the lab are called inside.
const (
	masterUser = "kurabe_lab"
	database   = "lab"
)

// rdsTarget is a service with the RDS API.
type rdsTarget struct {
	client  api
	proxies *proxies // nil where the lab makes none
	options Options
	kind    string
	poll    time.Duration
	id      string
	owner   owner.Owner

	password dial.Secret
	engine   *types.DBEngineVersion     // once asked for
	offers   map[string][]orderable     // by class, once asked for
	known    map[string]types.Parameter // of the engine's family, once asked for
	refused  map[string]string          // variants that Check found impossible
	checked  bool
	made     bool              // something was asked to be created
	groups   map[string]string // parameter group by variant
	shapes   map[string]shape  // by variant
	snapshot string            // the golden one
	trials   int
	current  string // the instance of the lease
	leaving  string // one whose deletion has been asked for
	// enter makes a variant true on a fresh server: prepareServer, but in tests.
	enter func(context.Context, dial.Server, study.Variant) (map[string]setting, error)
	// try runs statements in an empty database: tryIn, but in tests.
	try func(ctx context.Context, at dial.Server, name string, list []string) (refused, failure error)
}

// RDS is a service with the RDS API: Amazon's, or a running Kurabe at Options.Endpoint.
func RDS(ctx context.Context, o Options) (Target, error) {
	return newRDS(ctx, o)
}

func newRDS(ctx context.Context, o Options) (*rdsTarget, error) {
	own, err := newClients(ctx, o)
	if err != nil {
		return nil, err
	}
	t, err := newRDSTarget(own.client, o)
	switch {
	case err != nil:
		return nil, err
	case o.Endpoint == "":
		t.kind, t.poll = KindRDS, pollFar
	default:
		t.proxies = own
	}
	return t, nil
}

func newRDSTarget(client api, o Options) (*rdsTarget, error) {
	switch o.Engine {
	case study.Postgres, study.MariaDB, study.MySQL:
	default:
		return nil, fmt.Errorf("engine %q is none of %s, %s and %s", o.Engine, study.Postgres, study.MariaDB, study.MySQL)
	}
	me, err := owner.This()
	if err != nil {
		return nil, err
	}
	return &rdsTarget{
		client: client, options: o, kind: KindKurabe, poll: pollNear, id: newID(), owner: me, password: dial.Secret(password()),
		offers: map[string][]orderable{}, refused: map[string]string{}, groups: map[string]string{}, shapes: map[string]shape{}, enter: prepareServer, try: tryIn,
	}, nil
}

// newClients finds credentials: those of the file that is named, else the usual ones.
func newClients(ctx context.Context, o Options) (*proxies, error) {
	region := o.Region
	if region == "" && o.Endpoint != "" {
		region = "us-east-1" // of a service without a choice of them
	}
	var load []func(*config.LoadOptions) error
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	if o.CredentialsFile != "" {
		profile, err := config.LoadSharedConfigProfile(ctx, "default", func(l *config.LoadSharedConfigOptions) {
			l.CredentialsFiles, l.ConfigFiles = []string{o.CredentialsFile}, []string{}
		})
		if err != nil || !profile.Credentials.HasKeys() {
			return nil, fmt.Errorf("read the credentials in %s: it has no profile \"default\" with aws_access_key_id and aws_secret_access_key, or may not be read by us", o.CredentialsFile)
		}
		keys := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return profile.Credentials, nil })
		load = append(load, config.WithCredentialsProvider(keys))
	}
	c, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("load the configuration of AWS: %w", err)
	}
	if c.Region == "" {
		return nil, errors.New("no region is set: name it with --region, AWS_REGION or in the configuration of AWS")
	}
	client := rds.NewFromConfig(c, func(r *rds.Options) {
		r.HTTPClient = ownBody{r.HTTPClient}
		if o.Endpoint != "" { // else that of the environment, if any
			r.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	secrets := secretsmanager.NewFromConfig(c, func(s *secretsmanager.Options) { s.BaseEndpoint = optional(o.Endpoint) })
	return &proxies{client, secrets}, nil
}

// explain cuts an error of the SDK down to what a person needs.
func explain(what string, err error) error {
	var answer smithy.APIError
	var away *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && badCredentials(answer.ErrorCode()):
		return fmt.Errorf("%s: the service does not accept the credentials (%s: %s); name those of this service", what, answer.ErrorCode(), answer.ErrorMessage())
	case errors.As(err, &answer):
		return fmt.Errorf("%s: %w", what, refusal{answer})
	case errors.As(err, &away):
		return fmt.Errorf("%s: no service answers at %s (%w); start one, or name another", what, away.URL, away.Err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// refusal is what the API answered, as a person reads it.
type refusal struct{ smithy.APIError }

func (r refusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }
func (r refusal) Unwrap() error { return r.APIError }

func badCredentials(code string) bool {
	switch code {
	case "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "UnrecognizedClientException", "MissingAuthenticationToken", "IncompleteSignature":
		return true
	}
	return false
}

// hasCode says whether an answer of the API is one of these.
func hasCode(err error, codes ...string) bool {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.ErrorCode() == code || answer.ErrorCode() == code+"Fault" {
			return true
		}
	}
	return false
}

// version is the engine's, as asked for or by default.
func (t *rdsTarget) version(ctx context.Context) (*types.DBEngineVersion, error) {
	if t.engine != nil {
		return t.engine, nil
	}
	in := &rds.DescribeDBEngineVersionsInput{Engine: aws.String(t.options.Engine), DefaultOnly: aws.Bool(true)}
	if t.options.EngineVersion != "" {
		in.DefaultOnly, in.EngineVersion = nil, aws.String(t.options.EngineVersion)
	}
	out, err := t.client.DescribeDBEngineVersions(ctx, in)
	if err != nil {
		return nil, explain("ask for the engine's version", err)
	}
	if len(out.DBEngineVersions) == 0 {
		return nil, fmt.Errorf("the service offers no %s %s: ask another one, or for another version", t.options.Engine, t.options.EngineVersion)
	}
	t.engine = &out.DBEngineVersions[len(out.DBEngineVersions)-1] // the newest
	return t.engine, nil
}

// About implements Target.
func (t *rdsTarget) About(ctx context.Context) (About, error) {
	v, err := t.version(ctx)
	if err != nil {
		return About{}, err
	}
	class, err := t.class(ctx)
	if err != nil {
		return About{}, err
	}
	return About{
		Engine: t.options.Engine, Version: aws.ToString(v.EngineVersion), VersionFull: aws.ToString(v.DBEngineVersionDescription),
		Kind: t.kind, Class: class,
	}, nil
}

// The lab's tags: whose study it is, and which process that is or was.
const (
	tagLab   = "kurabe:lab"
	tagOwner = "kurabe:lab-owner"
)

func (t *rdsTarget) tags() []types.Tag {
	return []types.Tag{{Key: aws.String(tagLab), Value: aws.String(t.id)}, {Key: aws.String(tagOwner), Value: aws.String(t.owner.String())}}
}

func (t *rdsTarget) name(suffix string) string { return namePrefix + t.id + "-" + suffix }
