// Package conformance calls the local cloud through the official Go SDK, the family of clients that the real provider
// is written with. The local cloud and what surrounds a test (network, stock, quotas, throttling) come from
// test_api_go.py, which runs one test of this package at a time.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	openapiutil "github.com/alibabacloud-go/darabonba-openapi/v2/utils"
	ecs "github.com/alibabacloud-go/ecs-20140526/v7/client"
	"github.com/alibabacloud-go/tea/dara"
	"github.com/alibabacloud-go/tea/tea"
)

const (
	region  = "cn-hangzhou"
	kind    = "ecs.c8ae.4xlarge"
	unknown = "i-bp1aaaaaaaaaaaaaaaaa"
)

func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set", name)
	}
	return value
}

func client(t *testing.T) *ecs.Client {
	t.Helper()
	// Only what this machine serves is trusted: SSL_CERT_FILE names the local cloud's certificate.
	made, err := ecs.NewClient(&openapiutil.Config{
		AccessKeyId:     dara.String(setting(t, "KEY_ID")),
		AccessKeySecret: dara.String(setting(t, "KEY_SECRET")),
		Endpoint:        dara.String(setting(t, "ENDPOINT")),
		Protocol:        dara.String(setting(t, "PROTOCOL")),
		RegionId:        dara.String(region),
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sdkError is the error of the SDK behind err, with the error document of the answer.
func sdkError(t *testing.T, err error) (*tea.SDKError, map[string]any) {
	t.Helper()
	var found *tea.SDKError
	if !errors.As(err, &found) {
		t.Fatalf("want an error of the SDK, got %T %v", err, err)
	}
	document := map[string]any{}
	if err := json.Unmarshal([]byte(tea.StringValue(found.Data)), &document); err != nil {
		t.Fatal(err)
	}
	return found, document
}

// refused checks status, code and document of an error.
func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	found, document := sdkError(t, err)
	equal(t, "code", tea.StringValue(found.Code), code)
	equal(t, "status of "+code, tea.IntValue(found.StatusCode), status)
	for _, name := range []string{"RequestId", "HostId", "Code", "Message", "Recommend"} {
		if text, _ := document[name].(string); text == "" {
			t.Fatalf("the error document lacks %s: %v", name, document)
		}
	}
}

func launch(t *testing.T) *ecs.RunInstancesRequest {
	t.Helper()
	return &ecs.RunInstancesRequest{
		RegionId:     dara.String(region),
		ImageId:      dara.String(setting(t, "IMAGE")),
		InstanceType: dara.String(kind),
		InstanceName: dara.String("go-[1,4]"),
		UserData:     dara.String("I2Nsb3VkLWNvbmZpZwo="),
		NetworkInterface: []*ecs.RunInstancesRequestNetworkInterface{{
			InstanceType:                dara.String("Primary"),
			VSwitchId:                   dara.String(setting(t, "VSWITCH")),
			SecurityGroupIds:            []*string{dara.String(setting(t, "GROUP"))},
			NetworkInterfaceTrafficMode: dara.String("HighPerformance"),
		}},
		Tag: []*ecs.RunInstancesRequestTag{{Key: dara.String("suite"), Value: dara.String("go test & = 1")}},
	}
}

func ids(response *ecs.RunInstancesResponse) []*string {
	return response.Body.InstanceIdSets.InstanceIdSet
}

func remove(t *testing.T, c *ecs.Client, instances []*string) {
	t.Helper()
	for len(instances) > 0 {
		count := min(len(instances), 100)
		must[*ecs.DeleteInstancesResponse](t)(c.DeleteInstances(&ecs.DeleteInstancesRequest{
			RegionId: dara.String(region), InstanceId: instances[:count], Force: dara.Bool(true),
		}))
		instances = instances[count:]
	}
}

func TestOffers(t *testing.T) {
	c := client(t)
	regions := must[*ecs.DescribeRegionsResponse](t)(c.DescribeRegions(&ecs.DescribeRegionsRequest{}))
	known := map[string]bool{}
	for _, item := range regions.Body.Regions.Region {
		known[dara.StringValue(item.RegionId)] = true
	}
	equal(t, region, known[region], true)
	zones := must[*ecs.DescribeZonesResponse](t)(c.DescribeZones(&ecs.DescribeZonesRequest{RegionId: dara.String(region)}))
	for _, item := range zones.Body.Zones.Zone {
		if !strings.HasPrefix(dara.StringValue(item.ZoneId), region) {
			t.Fatalf("a zone of another region: %v", item)
		}
	}
	types := must[*ecs.DescribeInstanceTypesResponse](t)(c.DescribeInstanceTypes(&ecs.DescribeInstanceTypesRequest{
		InstanceTypes: []*string{dara.String(kind)},
	}))
	equal(t, "types", len(types.Body.InstanceTypes.InstanceType), 1)
	found := types.Body.InstanceTypes.InstanceType[0]
	equal(t, "vCPUs", dara.Int32Value(found.CpuCoreCount), 16)
	equal(t, "eRDMA interfaces", dara.Int32Value(found.EriQuantity) > 0, true)
	sold := must[*ecs.DescribeAvailableResourceResponse](t)(c.DescribeAvailableResource(&ecs.DescribeAvailableResourceRequest{
		RegionId: dara.String(region), DestinationResource: dara.String("InstanceType"), InstanceType: dara.String(kind),
	}))
	for _, zone := range sold.Body.AvailableZones.AvailableZone {
		resource := zone.AvailableResources.AvailableResource[0]
		equal(t, "resource", dara.StringValue(resource.Type), "InstanceType")
		value := resource.SupportedResources.SupportedResource[0]
		equal(t, "type", dara.StringValue(value.Value), kind)
		equal(t, "stock", dara.StringValue(value.StatusCategory), "WithStock")
	}
	attributes := must[*ecs.DescribeAccountAttributesResponse](t)(c.DescribeAccountAttributes(
		&ecs.DescribeAccountAttributesRequest{
			RegionId: dara.String(region), AttributeName: []*string{dara.String("max-spot-instance-vcpu-count")},
		}))
	equal(t, "attributes", len(attributes.Body.AccountAttributeItems.AccountAttributeItem), 1)
}

func TestInstances(t *testing.T) {
	c := client(t)
	run := must[*ecs.RunInstancesResponse](t)
	request := launch(t)
	request.DryRun = dara.Bool(true)
	_, err := c.RunInstances(request)
	refused(t, err, 400, "DryRunOperation")

	request = launch(t)
	request.Amount, request.MinAmount = dara.Int32(25), dara.Int32(20)
	request.ClientToken = dara.String(fmt.Sprintf("go-%d", time.Now().UnixNano()))
	made := ids(run(c.RunInstances(request)))
	defer func() { remove(t, c, made) }()
	equal(t, "instances", len(made), 25)
	again := ids(run(c.RunInstances(request)))
	equal(t, "instances of the same token", *again[0]+*again[24], *made[0]+*made[24])
	request.Amount = dara.Int32(24)
	_, err = c.RunInstances(request)
	refused(t, err, 400, "IdempotentParameterMismatch")

	seen := map[string]bool{}
	var token *string
	for pages := 1; ; pages++ {
		page := must[*ecs.DescribeInstancesResponse](t)(c.DescribeInstances(&ecs.DescribeInstancesRequest{
			RegionId: dara.String(region), MaxResults: dara.Int32(10), NextToken: token,
			Tag: []*ecs.DescribeInstancesRequestTag{{Key: dara.String("suite"), Value: dara.String("go test & = 1")}},
		}))
		for _, item := range page.Body.Instances.Instance {
			seen[dara.StringValue(item.InstanceId)] = true
			equal(t, "type", dara.StringValue(item.InstanceType), kind)
			equal(t, "address", len(item.VpcAttributes.PrivateIpAddress.IpAddress), 1)
			equal(t, "interfaces", len(item.NetworkInterfaces.NetworkInterface), 1)
			equal(t, "tag", dara.StringValue(item.Tags.Tag[0].TagValue), "go test & = 1")
		}
		equal(t, "total", dara.Int32Value(page.Body.TotalCount), 25)
		token = page.Body.NextToken
		if dara.StringValue(token) == "" {
			equal(t, "pages", pages, 3)
			break
		}
		_, err = c.DescribeInstances(&ecs.DescribeInstancesRequest{
			RegionId: dara.String(region), MaxResults: dara.Int32(10), NextToken: token,
		})
		refused(t, err, 400, "InvalidParameter.NextToken") // it is the token of another query
	}
	equal(t, "instances on all pages", len(seen), 25)

	release := time.Now().Add(2 * time.Hour).UTC().Format("2006-01-02T15:04:05Z")
	must[*ecs.ModifyInstanceAutoReleaseTimeResponse](t)(c.ModifyInstanceAutoReleaseTime(
		&ecs.ModifyInstanceAutoReleaseTimeRequest{
			RegionId: dara.String(region), InstanceId: made[0], AutoReleaseTime: dara.String(release),
		}))
	one, _ := json.Marshal([]string{*made[0]})
	shown := must[*ecs.DescribeInstancesResponse](t)(c.DescribeInstances(&ecs.DescribeInstancesRequest{
		RegionId: dara.String(region), InstanceIds: dara.String(string(one)),
	})).Body.Instances.Instance[0]
	equal(t, "release time", dara.StringValue(shown.AutoReleaseTime), release[:16]+"Z")
	_, err = c.ModifyInstanceAutoReleaseTime(&ecs.ModifyInstanceAutoReleaseTimeRequest{
		RegionId: dara.String(region), InstanceId: made[0], AutoReleaseTime: dara.String("2020-01-01T00:00:00Z"),
	})
	refused(t, err, 400, "InvalidAutoReleaseTime.Malformed")

	stopped := must[*ecs.StopInstancesResponse](t)(c.StopInstances(&ecs.StopInstancesRequest{
		RegionId: dara.String(region), InstanceId: made[:3], StoppedMode: dara.String("StopCharging"),
	}))
	for _, item := range stopped.Body.InstanceResponses.InstanceResponse {
		equal(t, "status", dara.StringValue(item.CurrentStatus), "Stopping")
		equal(t, "code", dara.StringValue(item.Code), "200")
	}
	_, err = c.DeleteInstances(&ecs.DeleteInstancesRequest{
		RegionId: dara.String(region), InstanceId: made[10:12], DryRun: dara.Bool(true), Force: dara.Bool(true),
	})
	refused(t, err, 400, "DRYRUN.SUCCESS")
	_, err = c.DeleteInstances(&ecs.DeleteInstancesRequest{RegionId: dara.String(region), InstanceId: made[10:12]})
	refused(t, err, 403, "IncorrectInstanceStatus")
	_, err = c.DeleteInstances(&ecs.DeleteInstancesRequest{
		RegionId: dara.String(region), InstanceId: []*string{made[10], dara.String(unknown)}, Force: dara.Bool(true),
	})
	refused(t, err, 404, "InvalidInstanceId.NotFound")
}

func TestLaunchTemplates(t *testing.T) {
	c := client(t)
	template := must[*ecs.CreateLaunchTemplateResponse](t)(c.CreateLaunchTemplate(&ecs.CreateLaunchTemplateRequest{
		RegionId: dara.String(region), LaunchTemplateName: dara.String("go-template"),
		ImageId: dara.String(setting(t, "IMAGE")), InstanceType: dara.String("ecs.c7.large"),
		SystemDisk: &ecs.CreateLaunchTemplateRequestSystemDisk{Category: dara.String("cloud_essd"), Size: dara.Int32(60)},
		NetworkInterface: []*ecs.CreateLaunchTemplateRequestNetworkInterface{{
			InstanceType: dara.String("Primary"), VSwitchId: dara.String(setting(t, "VSWITCH")),
			SecurityGroupId: dara.String(setting(t, "GROUP")),
		}},
	})).Body.LaunchTemplateId
	version := must[*ecs.CreateLaunchTemplateVersionResponse](t)(c.CreateLaunchTemplateVersion(
		&ecs.CreateLaunchTemplateVersionRequest{
			RegionId: dara.String(region), LaunchTemplateId: template, InstanceType: dara.String(kind),
			ImageId: dara.String(setting(t, "IMAGE")),
		}))
	equal(t, "version", dara.Int64Value(version.Body.LaunchTemplateVersionNumber), 2)
	must[*ecs.ModifyLaunchTemplateDefaultVersionResponse](t)(c.ModifyLaunchTemplateDefaultVersion(
		&ecs.ModifyLaunchTemplateDefaultVersionRequest{
			RegionId: dara.String(region), LaunchTemplateId: template, DefaultVersionNumber: dara.Int64(2),
		}))
	list := must[*ecs.DescribeLaunchTemplatesResponse](t)(c.DescribeLaunchTemplates(&ecs.DescribeLaunchTemplatesRequest{
		RegionId: dara.String(region), LaunchTemplateId: []*string{template},
	})).Body.LaunchTemplateSets.LaunchTemplateSet
	equal(t, "default version", dara.Int64Value(list[0].DefaultVersionNumber), 2)
	versions := must[*ecs.DescribeLaunchTemplateVersionsResponse](t)(c.DescribeLaunchTemplateVersions(
		&ecs.DescribeLaunchTemplateVersionsRequest{
			RegionId: dara.String(region), LaunchTemplateId: template, LaunchTemplateVersion: []*int64{dara.Int64(1)},
		})).Body.LaunchTemplateVersionSets.LaunchTemplateVersionSet
	equal(t, "versions", len(versions), 1)
	equal(t, "type", dara.StringValue(versions[0].LaunchTemplateData.InstanceType), "ecs.c7.large")

	made := ids(must[*ecs.RunInstancesResponse](t)(c.RunInstances(&ecs.RunInstancesRequest{
		RegionId: dara.String(region), LaunchTemplateId: template, LaunchTemplateVersion: dara.Int64(1),
	})))
	one, _ := json.Marshal([]string{*made[0]})
	shown := must[*ecs.DescribeInstancesResponse](t)(c.DescribeInstances(&ecs.DescribeInstancesRequest{
		RegionId: dara.String(region), InstanceIds: dara.String(string(one)),
	})).Body.Instances.Instance[0]
	equal(t, "type of the instance", dara.StringValue(shown.InstanceType), "ecs.c7.large")
	disks := must[*ecs.DescribeDisksResponse](t)(c.DescribeDisks(&ecs.DescribeDisksRequest{
		RegionId: dara.String(region), InstanceId: made[0],
	})).Body.Disks.Disk
	equal(t, "system disk", dara.Int32Value(disks[0].Size), 60)
	remove(t, c, made)

	_, err := c.DeleteLaunchTemplateVersion(&ecs.DeleteLaunchTemplateVersionRequest{
		RegionId: dara.String(region), LaunchTemplateId: template, DeleteVersion: []*int64{dara.Int64(2)},
	})
	if err == nil {
		t.Fatal("the default version was deleted")
	}
	must[*ecs.DeleteLaunchTemplateVersionResponse](t)(c.DeleteLaunchTemplateVersion(
		&ecs.DeleteLaunchTemplateVersionRequest{
			RegionId: dara.String(region), LaunchTemplateId: template, DeleteVersion: []*int64{dara.Int64(1)},
		}))
	must[*ecs.DeleteLaunchTemplateResponse](t)(c.DeleteLaunchTemplate(&ecs.DeleteLaunchTemplateRequest{
		RegionId: dara.String(region), LaunchTemplateId: template,
	}))
	_, err = c.RunInstances(&ecs.RunInstancesRequest{RegionId: dara.String(region), LaunchTemplateId: template})
	refused(t, err, 404, "InvalidLaunchTemplate.NotFound")
}

func TestSecurityGroups(t *testing.T) {
	c := client(t)
	group := must[*ecs.CreateSecurityGroupResponse](t)(c.CreateSecurityGroup(&ecs.CreateSecurityGroupRequest{
		RegionId: dara.String(region), VpcId: dara.String(setting(t, "VPC")), SecurityGroupName: dara.String("go-group"),
	})).Body.SecurityGroupId
	rules := []*ecs.AuthorizeSecurityGroupRequestPermissions{
		{IpProtocol: dara.String("tcp"), PortRange: dara.String("22/22"), SourceCidrIp: dara.String("10.0.0.0/8")},
		{IpProtocol: dara.String("all"), PortRange: dara.String("-1/-1"), SourceGroupId: group, Priority: dara.String("2")},
	}
	for range 2 { // the second time is no error
		must[*ecs.AuthorizeSecurityGroupResponse](t)(c.AuthorizeSecurityGroup(&ecs.AuthorizeSecurityGroupRequest{
			RegionId: dara.String(region), SecurityGroupId: group, Permissions: rules,
		}))
	}
	_, err := c.AuthorizeSecurityGroup(&ecs.AuthorizeSecurityGroupRequest{
		RegionId: dara.String(region), SecurityGroupId: group,
		Permissions: []*ecs.AuthorizeSecurityGroupRequestPermissions{{
			IpProtocol: dara.String("tcp"), PortRange: dara.String("22"), SourceCidrIp: dara.String("10.0.0.0/8"),
		}},
	})
	refused(t, err, 400, "InvalidPortRange.Malformed")
	shown := must[*ecs.DescribeSecurityGroupAttributeResponse](t)(c.DescribeSecurityGroupAttribute(
		&ecs.DescribeSecurityGroupAttributeRequest{
			RegionId: dara.String(region), SecurityGroupId: group, Direction: dara.String("ingress"),
		})).Body.Permissions.Permission
	equal(t, "rules", len(shown), 2)
	must[*ecs.RevokeSecurityGroupResponse](t)(c.RevokeSecurityGroup(&ecs.RevokeSecurityGroupRequest{
		RegionId: dara.String(region), SecurityGroupId: group,
		Permissions: []*ecs.RevokeSecurityGroupRequestPermissions{{
			IpProtocol: dara.String("tcp"), PortRange: dara.String("22/22"), SourceCidrIp: dara.String("10.0.0.0/8"),
		}},
	}))
	all := must[*ecs.DescribeSecurityGroupsResponse](t)(c.DescribeSecurityGroups(&ecs.DescribeSecurityGroupsRequest{
		RegionId: dara.String(region), SecurityGroupIds: dara.String(fmt.Sprintf("[%q]", *group)),
	})).Body.SecurityGroups.SecurityGroup
	equal(t, "group", dara.StringValue(all[0].SecurityGroupName), "go-group")
	must[*ecs.DeleteSecurityGroupResponse](t)(c.DeleteSecurityGroup(&ecs.DeleteSecurityGroupRequest{
		RegionId: dara.String(region), SecurityGroupId: group,
	}))
}

func TestErrors(t *testing.T) {
	c := client(t)
	request := launch(t)
	request.InstanceType = dara.String("ecs.none.large")
	_, err := c.RunInstances(request)
	refused(t, err, 400, "InvalidInstanceType.ValueNotSupported")
	request = launch(t)
	request.ImageId = dara.String("m-none")
	_, err = c.RunInstances(request)
	refused(t, err, 404, "InvalidImageId.NotFound")
	request = launch(t)
	request.Amount = dara.Int32(101)
	_, err = c.RunInstances(request)
	refused(t, err, 400, "InvalidParameter.Amount")
	_, err = c.DescribeInstances(&ecs.DescribeInstancesRequest{RegionId: dara.String("mars-north-1")})
	refused(t, err, 404, "InvalidRegionId.NotFound")
	many, _ := json.Marshal(make([]string, 101))
	_, err = c.DescribeInstances(&ecs.DescribeInstancesRequest{
		RegionId: dara.String(region), InstanceIds: dara.String(string(many)),
	})
	refused(t, err, 400, "InvalidParameter.InstanceIds")
	other, err := ecs.NewClient(&openapiutil.Config{
		AccessKeyId: dara.String(setting(t, "KEY_ID")), AccessKeySecret: dara.String("wrong"),
		Endpoint: dara.String(setting(t, "ENDPOINT")), Protocol: dara.String(setting(t, "PROTOCOL")),
		RegionId: dara.String(region),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.DescribeRegions(&ecs.DescribeRegionsRequest{})
	refused(t, err, 400, "SignatureDoesNotMatch")
}

// TestNoStock runs with stock for two instances.
func TestNoStock(t *testing.T) {
	c := client(t)
	request := launch(t)
	request.Amount, request.MinAmount = dara.Int32(3), dara.Int32(3)
	_, err := c.RunInstances(request)
	refused(t, err, 403, "OperationDenied.NoStock")
	request.MinAmount = dara.Int32(1)
	made := ids(must[*ecs.RunInstancesResponse](t)(c.RunInstances(request)))
	equal(t, "instances", len(made), 2)
	remove(t, c, made)
}

// TestQuota runs with a quota of 16 vCPUs.
func TestQuota(t *testing.T) {
	request := launch(t)
	request.Amount = dara.Int32(2)
	_, err := client(t).RunInstances(request)
	refused(t, err, 403, "QuotaExceed.ElasticQuota")
}

// TestThrottling runs with one call of DescribeZones a minute, and a clock that reaches the next minute meanwhile.
func TestThrottling(t *testing.T) {
	c := client(t)
	request := &ecs.DescribeZonesRequest{RegionId: dara.String(region)}
	must[*ecs.DescribeZonesResponse](t)(c.DescribeZones(request))
	_, err := c.DescribeZones(request)
	refused(t, err, http.StatusTooManyRequests, "Throttling.User")
	// The SDK waits as long as the answer says, but no longer than MaxDelay (which this SDK counts in seconds).
	c.RetryOptions = &dara.RetryOptions{Retryable: true, RetryCondition: []*dara.RetryCondition{{
		MaxAttempts: 10, MaxDelay: 1, ErrorCode: []string{"Throttling.User"},
	}}}
	started := time.Now()
	must[*ecs.DescribeZonesResponse](t)(c.DescribeZones(request))
	if waited := time.Since(started); waited < time.Second {
		t.Fatalf("the SDK did not wait: %v", waited)
	}
}
