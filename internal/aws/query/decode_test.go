package query

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

func decode(form string, in any) (*Form, error) {
	f, err := Parse(form)
	if err != nil {
		return nil, err
	}
	return f, Decode(shape.RDS, f, in)
}

func TestDecode(t *testing.T) {
	filters := []types.Filter{
		{Name: aws.String("dbi-resource-id"), Values: []string{"db-A", "db-B"}},
		{Name: aws.String("engine"), Values: []string{}},
	}
	at := aws.Time(time.Date(2009, 9, 7, 23, 45, 0, 0, time.UTC))
	cases := []struct {
		name, form string
		want       any
	}{
		{"named elements", "Filters.Filter.1.Name=dbi-resource-id&Filters.Filter.1.Values.Value.1=db-A&Filters.Filter.1.Values.Value.2=db-B" +
			"&Filters.Filter.2.Name=engine&Filters.Filter.2.Values=", &rds.DescribeDBInstancesInput{Filters: filters}},
		{"plain members", "Filters.member.1.Name=dbi-resource-id&Filters.member.1.Values.member.1=db-A&Filters.member.1.Values.member.2=db-B" +
			"&Filters.member.2.Name=engine&Filters.member.2.Values=", &rds.DescribeDBInstancesInput{Filters: filters}},
		{"ten elements in order", "TagKeys.member.10=j&TagKeys.member.1=a&TagKeys.member.2=b&TagKeys.member.3=c&TagKeys.member.4=d&TagKeys.member.5=e" +
			"&TagKeys.member.6=f&TagKeys.member.7=g&TagKeys.member.8=h&TagKeys.member.9=i&ResourceName=r",
			&rds.RemoveTagsFromResourceInput{ResourceName: aws.String("r"), TagKeys: strings.Split("abcdefghij", "")}},
		{"empty list", "ResourceName=r&TagKeys=", &rds.RemoveTagsFromResourceInput{ResourceName: aws.String("r"), TagKeys: []string{}}},
		{"empty string", "Marker=", &rds.DescribeDBInstancesInput{Marker: aws.String("")}},
		{"text", "Marker=%E6%AF%94+%26%3D%0A%2B", &rds.DescribeDBInstancesInput{Marker: aws.String("比 &=\n+")}},
		{"time", "StartTime=2009-09-07T23:45:00Z", &rds.DescribeEventsInput{StartTime: at}},
		{"time with fraction and offset", "StartTime=2009-09-08T08:45:00.000%2B09:00", &rds.DescribeEventsInput{StartTime: at}},
		{"numbers and booleans", "MaxRecords=100&IncludeShared=true&IncludePublic=false",
			&rds.DescribeDBSnapshotsInput{MaxRecords: aws.Int32(100), IncludeShared: aws.Bool(true), IncludePublic: aws.Bool(false)}},
		{"enum", "SourceType=db-instance", &rds.DescribeEventsInput{SourceType: types.SourceTypeDbInstance}},
		{"structure", "DBProxyName=p&TargetGroupName=default&ConnectionPoolConfig.MaxConnectionsPercent=90",
			&rds.ModifyDBProxyTargetGroupInput{DBProxyName: aws.String("p"), TargetGroupName: aws.String("default"),
				ConnectionPoolConfig: &types.ConnectionPoolConfiguration{MaxConnectionsPercent: aws.Int32(90)}}},
		{"map", "SourceArn=s&TargetArn=t&IntegrationName=n&AdditionalEncryptionContext.entry.1.key=k&AdditionalEncryptionContext.entry.1.value=v",
			&rds.CreateIntegrationInput{SourceArn: aws.String("s"), TargetArn: aws.String("t"), IntegrationName: aws.String("n"),
				AdditionalEncryptionContext: map[string]string{"k": "v"}}},
		{"double", "DBShardGroupIdentifier=g&MaxACU=1.5",
			&rds.ModifyDBShardGroupInput{DBShardGroupIdentifier: aws.String("g"), MaxACU: aws.Float64(1.5)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(c.want).Elem()).Interface()
			f, err := decode(c.form, got)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if left := f.Unconsumed(); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

func TestDecodeFlat(t *testing.T) {
	flat := shape.New(shape.Text{Flat: true})
	type filter struct {
		Name  string
		Value []string
	}
	decode := func(form string) (got struct{ Filter []filter }, left []string, err error) {
		f, err := Parse(form)
		if err != nil {
			t.Fatal(err)
		}
		err = Decode(flat, f, &got)
		return got, f.Unconsumed(), err
	}
	got, left, err := decode("Filter.1.Name=a&Filter.1.Value.1=x&Filter.1.Value.2=y&Filter.2.Name=b")
	if want := []filter{{"a", []string{"x", "y"}}, {Name: "b"}}; err != nil || len(left) > 0 || !reflect.DeepEqual(got.Filter, want) {
		t.Errorf("%+v, left %q, %v", got, left, err)
	}
	for _, form := range []string{"Filter.2.Name=a", "Filter.member.1.Name=a", "Filter=a", "Filter.1=a"} {
		if got, _, err := decode(form); !errors.As(err, new(*fault.Fault)) {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	list := &strings.Builder{}
	for i := range MaxListItems + 1 {
		fmt.Fprintf(list, "&Filters.Filter.%d.Name=x&Filters.Filter.%d.Values=", i+1, i+1)
	}
	cases := []struct{ name, form, code, message string }{
		{"not a number", "MaxRecords=many", "InvalidParameterValue", "The value of parameter MaxRecords is not an integer"},
		{"number out of range", "MaxRecords=2147483648", "InvalidParameterValue", "MaxRecords"},
		{"empty number", "MaxRecords=", "InvalidParameterValue", "MaxRecords"},
		{"required member of an element", "Filters.Filter.1.Name=x", "MissingParameter",
			"The request must contain the parameter Filters.Filter.1.Values."},
		{"list given a value", "Filters=x", "MalformedInput", "Filters is a list"},
		{"value given members", "Marker.x=1", "MalformedInput", "Marker is a value"},
		{"structure given a value", "Filters.Filter.1=x", "MalformedInput", "Filters.Filter.1 is a structure"},
		{"gap", "Filters.Filter.2.Name=x", "MalformedInput", "without a gap"},
		{"element zero", "Filters.Filter.0.Name=x", "MalformedInput", "without a gap"},
		{"leading zero", "Filters.Filter.01.Name=x", "MalformedInput", "without a gap"},
		{"both element names", "Filters.Filter.1.Name=x&Filters.member.1.Name=x", "MalformedInput", "mixes"},
		{"long list", list.String(), "MalformedInput", "more than 1000 elements"},
		{"twice", "Marker=a&Marker=b", "MalformedInput", "Marker is given more than once"},
		{"many keys", strings.Repeat("a=1&", MaxKeys+1), "MalformedInput", "more than"},
		{"deep", strings.Repeat("a.", MaxDepth) + "a=1", "MalformedInput", "too deeply"},
		{"long key", strings.Repeat("a", MaxKeyBytes+1) + "=1", "MalformedInput", "name"},
		{"empty part", "a..b=1", "MalformedInput", "not well formed"},
		{"bad escape", "Marker=%zz", "MalformedInput", "Marker"},
		{"not UTF-8", "Marker=%ff", "MalformedInput", "Marker"},
		{"NUL", "Marker=%00", "MalformedInput", "Marker"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(c.form, &rds.DescribeDBInstancesInput{})
			var f *fault.Fault
			if !errors.As(err, &f) || f.Code != c.code || f.Status != 400 || !strings.Contains(f.Message, c.message) {
				t.Fatalf("got %v, want %s %q", err, c.code, c.message)
			}
		})
	}
	_, err := decode("Engine=postgres", &rds.CreateDBInstanceInput{})
	if err == nil || err.Error() != "MissingParameter: The request must contain the parameter DBInstanceClass." {
		t.Fatalf("got %v", err)
	}
}

func TestUnconsumed(t *testing.T) {
	f, err := decode("Action=A&Version=V&MaxRecords=20&maxrecords=1&Filters.Foo.1=x&Bogus.a.b=2&X-Amz-Date=d", &rds.DescribeDBInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Take("Action") != "A" || f.Take("Version") != "V" || f.Take("None") != "" {
		t.Fatal("take")
	}
	f.TakePrefix("X-Amz-")
	if got, want := f.Unconsumed(), []string{"Bogus.a.b", "Filters.Foo.1", "maxrecords"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("DBInstanceIdentifier=a&DBInstanceClass=b&Engine=c&Tags.Tag.1.Key=k&Tags.Tag.1.Value=v&AllocatedStorage=20&MultiAZ=true")
	f.Add("Tags.member.1.Key=k&VpcSecurityGroupIds.VpcSecurityGroupId.1=sg&DBSecurityGroups=")
	f.Add("TagSpecifications.item.1.Tags.Tag.1.Key=k&ProcessorFeatures.ProcessorFeature.1.Name=%E6%AF%94")
	f.Fuzz(func(t *testing.T, form string) {
		in := &rds.CreateDBInstanceInput{}
		parsed, err := decode(form, in)
		if err != nil {
			if !errors.As(err, new(*fault.Fault)) {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		for _, required := range []*string{in.DBInstanceIdentifier, in.DBInstanceClass, in.Engine} {
			if required == nil {
				t.Fatalf("accepted without a required member: %q", form)
			}
		}
		parsed.Unconsumed()
	})
}
