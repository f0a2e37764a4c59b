package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/lab/study"
)

// changesMax is how many parameters one request may change.
const changesMax = 20

// Check implements Target. What it creates is one parameter group, in which each
// variant's parameters are tried: only the service knows what it accepts.
func (t *rdsTarget) Check(ctx context.Context, s *study.Study) (map[string]string, error) {
	if _, err := t.version(ctx); err != nil {
		return nil, err
	}
	if err := t.parameters(ctx); err != nil {
		return nil, err
	}
	gib := t.room(s)
	t.refused = map[string]string{}
	for _, v := range s.Variants {
		if !applies(v.Engines, t.options.Engine) {
			continue
		}
		shape, why, err := t.shape(ctx, v, gib)
		if err != nil {
			return nil, err
		}
		if why == "" {
			why, err = t.checkVariant(ctx, v, shape)
		}
		if err != nil {
			return nil, err
		}
		if why == "" {
			why = losesPrepared(ctx, s, v)
		}
		if why == "" {
			why = noRoom(s, shape.gib)
		}
		if why != "" {
			t.refused[v.Name] = why
		}
		t.shapes[v.Name] = shape
	}
	if err := t.tryParameters(ctx, s); err != nil {
		return nil, err
	}
	t.checked = true
	return t.refused, nil
}

// checkVariant says why a variant cannot be had, but for its shape and parameters.
func (t *rdsTarget) checkVariant(ctx context.Context, v study.Variant, s shape) (string, error) {
	if why := badEndpoint(v.Endpoint); why != "" {
		return why, nil
	}
	switch {
	case v.Endpoint == study.EndpointProxy && t.kind == KindRDS:
		return "the lab cannot make a proxy of Amazon's, which needs a role and a secret: with the URL of a server as the target, the address of its proxy can be an endpoint", nil
	case v.Endpoint == study.EndpointProxy && t.proxies == nil:
		return "the service has no proxy of its own", nil
	case v.Endpoint == study.EndpointProxy:
		return t.hasProxies(ctx)
	}
	if _, ours := betweenKinds[v.Endpoint]; v.Endpoint != "" && !ours {
		return fmt.Sprintf("endpoint %s stands before another server: here every trial has a new one, which it does not know", v.Endpoint), nil
	}
	if why := lacking(v, t.options.Engine); why != "" {
		return why, nil
	}
	if why := t.missingExtension(v); why != "" {
		return why, nil
	}
	if v.Needs == "" || packages[v.Needs] != "" || t.hasExtension(v.Needs) {
		return "", nil
	}
	if v.Needs == needActivityStream {
		list, err := t.offered(ctx, s.class)
		for _, o := range list {
			if o.activityStreams {
				return "the service offers activity streams, and this version of the lab cannot start one", err
			}
		}
		return "the service offers no activity streams", err
	}
	return fmt.Sprintf("it needs %q, which the service does not offer", v.Needs), nil
}

// extensionsParameter lists the extensions that a service offers.
const extensionsParameter = "rds.extensions"

func (t *rdsTarget) hasExtension(name string) bool {
	p := t.known[extensionsParameter]
	for _, have := range append(items(aws.ToString(p.ParameterValue)), items(aws.ToString(p.AllowedValues))...) {
		if have == name {
			return true
		}
	}
	return false
}

// missingExtension names one that a variant creates and the service does not offer. A
// service that lists none is asked by the statement itself.
func (t *rdsTarget) missingExtension(v study.Variant) string {
	if _, lists := t.known[extensionsParameter]; !lists {
		return ""
	}
	for _, name := range extensions(v, t.options.Engine) {
		if !t.hasExtension(name) {
			return "the service does not offer the extension " + name + t.extensionHint(name)
		}
	}
	return ""
}

// extensionPackages are the Debian packages of extensions that built-in studies create,
// with the place of PostgreSQL's major version.
var extensionPackages = map[string]string{"pgaudit": "postgresql-%s-pgaudit"}

// extensionHint says how a service of one's own comes to offer an extension: it looks for
// what its host has when it starts.
func (t *rdsTarget) extensionHint(name string) string {
	if t.kind == KindRDS || t.engine == nil || extensionPackages[name] == "" {
		return ""
	}
	hint := packageHint(name, aws.ToString(t.engine.EngineVersion), "the service's host")
	if t.kind == KindPrivate {
		return hint
	}
	return hint + ", and is found when the service starts"
}

// parameters asks for those of the engine's family.
func (t *rdsTarget) parameters(ctx context.Context) error {
	if t.known != nil {
		return nil
	}
	known := map[string]types.Parameter{}
	in := &rds.DescribeEngineDefaultParametersInput{DBParameterGroupFamily: t.engine.DBParameterGroupFamily}
	for range pagesMax {
		out, err := t.client.DescribeEngineDefaultParameters(ctx, in)
		if err != nil {
			return explain("ask for the engine's parameters", err)
		}
		if out.EngineDefaults == nil {
			break
		}
		for _, p := range out.EngineDefaults.Parameters {
			known[strings.ToLower(aws.ToString(p.ParameterName))] = p
		}
		if in.Marker = out.EngineDefaults.Marker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	t.known = known
	return nil
}

// changes are a variant's parameters as requests take them.
func (t *rdsTarget) changes(v study.Variant) (parts [][]types.Parameter, why string) {
	var part []types.Parameter
	for _, name := range sortedKeys(v.Parameters) {
		p, ok := t.known[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Sprintf("the service knows no parameter %s of %s", name, aws.ToString(t.engine.DBParameterGroupFamily))
		}
		method := types.ApplyMethodPendingReboot
		if aws.ToString(p.ApplyType) == "dynamic" {
			method = types.ApplyMethodImmediate
		}
		part = append(part, types.Parameter{ParameterName: aws.String(name), ParameterValue: aws.String(v.Parameters[name]), ApplyMethod: method})
		if len(part) == changesMax {
			parts, part = append(parts, part), nil
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts, ""
}

// tryParameters sets each variant's in a group that no instance has.
func (t *rdsTarget) tryParameters(ctx context.Context, s *study.Study) (failure error) {
	group, err := t.createGroup(ctx, "check")
	if err != nil {
		return err
	}
	defer func() {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		if err := t.deleteGroup(closeCtx, group); failure == nil {
			failure = err
		}
	}()
	for _, v := range s.Variants {
		if !applies(v.Engines, t.options.Engine) || t.refused[v.Name] != "" || len(v.Parameters) == 0 {
			continue
		}
		why, err := t.setParameters(ctx, group, v)
		if err != nil {
			return err
		}
		if why != "" {
			t.refused[v.Name] = why
		}
		if _, err := t.client.ResetDBParameterGroup(ctx, &rds.ResetDBParameterGroupInput{DBParameterGroupName: aws.String(group), ResetAllParameters: aws.Bool(true)}); err != nil {
			return explain("try the parameters of "+v.Name, err)
		}
	}
	return nil
}

// setParameters puts a variant's into a group; why is what the service has against them.
func (t *rdsTarget) setParameters(ctx context.Context, group string, v study.Variant) (why string, err error) {
	parts, why := t.changes(v)
	if why != "" {
		return why, nil
	}
	for _, part := range parts {
		_, err := t.client.ModifyDBParameterGroup(ctx, &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(group), Parameters: part})
		if hasCode(err, "InvalidParameterValue", "InvalidParameterCombination") {
			return "the service refuses its parameters: " + explain("set them", err).Error(), nil
		}
		if err != nil {
			return "", explain("set the parameters of "+v.Name, err)
		}
	}
	return "", nil
}

func (t *rdsTarget) createGroup(ctx context.Context, suffix string) (string, error) {
	name := t.name(suffix)
	t.made = true
	_, err := t.client.CreateDBParameterGroup(ctx, &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(name), DBParameterGroupFamily: t.engine.DBParameterGroupFamily,
		Description: aws.String("a study of kurabe lab"), Tags: t.tags(),
	})
	return name, explain("create parameter group "+name, err)
}

func (t *rdsTarget) deleteGroup(ctx context.Context, name string) error {
	_, err := t.client.DeleteDBParameterGroup(ctx, &rds.DeleteDBParameterGroupInput{DBParameterGroupName: aws.String(name)})
	if hasCode(err, "DBParameterGroupNotFound") {
		return nil
	}
	return explain("delete parameter group "+name, err)
}
