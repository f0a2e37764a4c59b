package api

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
)

// ARNs of any region mean what is here, and are answered in the request's. Tags pass as they are.
func TestRegions(t *testing.T) {
	g := regions{"us-east-1", "000000000000"}
	const there, here = "arn:aws:rds:eu-west-1:000000000000:db:shop", "arn:aws:rds:us-east-1:000000000000:db:shop"
	for text, want := range map[string]string{
		there: here, here: here, "shop": "shop", "": "", "arn:aws-cn:rds:cn-north-1:000000000000:snapshot:rds:x": "arn:aws:rds:us-east-1:000000000000:snapshot:rds:x",
		"arn:aws:cloudwatch:eu-west-1:000000000000:alarm:a:b": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:a:b",
		"arn:aws:rds:eu-west-1:111111111111:db:shop":          "arn:aws:rds:eu-west-1:111111111111:db:shop",
		"arn:aws:kms:eu-west-1:000000000000:key/1":            "arn:aws:kms:eu-west-1:000000000000:key/1",
	} {
		if got := g.inward(text); got != want {
			t.Errorf("%s is %s", text, got)
		}
	}
	shared := aws.String(here)
	out := &rds.DescribeDBInstancesOutput{DBInstances: []types.DBInstance{{
		DBInstanceArn: shared, TagList: []types.Tag{{Key: aws.String("arn"), Value: aws.String(here)}}, ReadReplicaDBInstanceIdentifiers: []string{here, "x", `{"a":"arn:aws:sns:us-east-1:000000000000:t","b":"arn:aws:kms:us-east-1:000000000000:t"}`},
	}}}
	translate(out, func(text string) string { return g.outward(text, "eu-west-1") })
	one := out.DBInstances[0]
	if *one.DBInstanceArn != there || !cmp.Equal(one.ReadReplicaDBInstanceIdentifiers, []string{there, "x", `{"a":"arn:aws:sns:eu-west-1:000000000000:t","b":"arn:aws:kms:us-east-1:000000000000:t"}`}) || *one.TagList[0].Value != here {
		t.Errorf("%s, %v, %s", *one.DBInstanceArn, one.ReadReplicaDBInstanceIdentifiers, *one.TagList[0].Value)
	}
	if *shared != here {
		t.Error("what others hold was changed")
	}
	secret := &secretsmanager.GetSecretValueOutput{ARN: aws.String("arn:aws:secretsmanager:us-east-1:000000000000:secret:a-AAAAAA"), SecretString: aws.String(here)}
	translate(secret, func(text string) string { return g.outward(text, "eu-west-1") })
	if *secret.ARN != "arn:aws:secretsmanager:eu-west-1:000000000000:secret:a-AAAAAA" || *secret.SecretString != here {
		t.Errorf("a secret: %s, %s", *secret.ARN, *secret.SecretString)
	}
	in := &rds.ListTagsForResourceInput{ResourceName: aws.String(there), Filters: []types.Filter{{Name: aws.String("x"), Values: []string{there}}}}
	translate(in, g.inward)
	if *in.ResourceName != here || in.Filters[0].Values[0] != here {
		t.Errorf("%s, %v", *in.ResourceName, in.Filters[0].Values)
	}
}
