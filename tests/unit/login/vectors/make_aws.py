#!/usr/bin/env python3
"""Makes aws.json beside it: requests, and their signatures by AWS' own client library.

    python3 make_aws.py > aws.json       (needs botocore: Debian's python3-botocore)

The first rows are requests as this program sends them; those named suite_* are the requests of AWS' published
test suite for Signature Version 4 that can occur here (paths are normal already).
"""
import datetime
import json
import types
from unittest import mock

import botocore
import botocore.auth
import botocore.awsrequest
import botocore.credentials

FORM = 'Content-Type: application/x-www-form-urlencoded; charset=utf-8'
TOKEN = 'IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEUCIQ+/=='
SUITE = dict(now='2015-08-30T12:36:00Z', region='us-east-1', service='service')
HOST = 'https://example.amazonaws.com'
UNRESERVED = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

ROWS = [
    dict(name='describe', url='https://autoscaling.eu-central-1.amazonaws.com/', headers=[FORM],
         body='Action=DescribeAutoScalingGroups&Version=2011-01-01&AutoScalingGroupNames.member.1=ng-1'),
    dict(name='set_desired', region='us-east-1', url='https://autoscaling.us-east-1.amazonaws.com/', headers=[FORM],
         body='Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=a%20b%2Bc&DesiredCapacity=4'
              '&HonorCooldown=false'),
    dict(name='terminate_with_token', token=TOKEN, url='https://autoscaling.eu-central-1.amazonaws.com/',
         headers=[FORM], body='Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01'
                              '&InstanceId=i-0abcdef1234567890&ShouldDecrementDesiredCapacity=true'),
    dict(name='china', region='cn-north-1', url='https://autoscaling.cn-north-1.amazonaws.com.cn/', headers=[FORM],
         body='Action=DescribeScalingActivities&Version=2011-01-01'),
    dict(name='endpoint_with_port', url='http://127.0.0.1:5005/', headers=[FORM], body='Action=X'),
    dict(name='eks', service='eks', token=TOKEN, method='GET',
         url='https://eks.eu-central-1.amazonaws.com/clusters/prod/node-groups/ng-1'),
    dict(name='eks_escaped_path', service='eks', method='GET',
         url='https://eks.eu-central-1.amazonaws.com/clusters/prod/node-groups/ng%201%2B%C3%A4'),
    dict(name='sts_assume_role', service='sts', url='https://sts.eu-central-1.amazonaws.com/', headers=[FORM],
         body='Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fx'
              '&RoleSessionName=s&DurationSeconds=3600'),
    dict(name='end_of_a_leap_day', now='2024-02-29T23:59:59Z', url='https://autoscaling.eu-central-1.amazonaws.com/',
         headers=[FORM], body='Action=X'),
    dict(name='long_secret', secret='s' * 300, url='https://autoscaling.eu-central-1.amazonaws.com/', body='x'),

    dict(name='suite_vanilla', method='GET', url=HOST + '/', **SUITE),
    dict(name='session_token', method='GET', url=HOST + '/', token='6e86291e8372ff2a2260956d9b8aae1d',
         **SUITE),
    dict(name='path_is_empty', method='GET', url=HOST, **SUITE),
    dict(name='suite_header_key_duplicate', method='GET', url=HOST + '/',
         headers=['My-Header1: value2', 'My-Header1: value2', 'My-Header1: value1'], **SUITE),
    dict(name='suite_header_value_order', method='GET', url=HOST + '/',
         headers=['My-Header1: value4', 'My-Header1: value1', 'My-Header1: value3', 'My-Header1: value2'], **SUITE),
    dict(name='suite_header_value_trim', method='GET', url=HOST + '/',
         headers=['My-Header1:  value1', 'My-Header2:  "a   b   c" '], **SUITE),
    dict(name='suite_header_key_sort', url=HOST + '/', headers=['My-Header1: value1'], **SUITE),
    dict(name='suite_header_value_case', url=HOST + '/', headers=['My-Header1: VALUE1'], **SUITE),
    dict(name='suite_unreserved', method='GET', url=f'{HOST}/{UNRESERVED}', **SUITE),
    dict(name='path_with_utf8', method='GET', url=HOST + '/%E1%88%B4', **SUITE),
    dict(name='path_with_empty_segments', method='GET', url=HOST + '//a//b/', service='aps'),
    dict(name='path_with_dots', method='GET', url=HOST + '/a/./b/../c', service='aps'),
    dict(name='path_that_ends_in_dots', method='GET', url=HOST + '/a/b/..', service='aps'),
    dict(name='path_above_the_root', method='GET', url=HOST + '/../a/.', service='aps'),
    dict(name='suite_empty_query_key', method='GET', url=HOST + '/?Param1=value1', **SUITE),
    dict(name='query_order_of_values', method='GET', url=HOST + '/?Param1=value2&Param1=Value1', **SUITE),
    dict(name='suite_query_order_key_case', method='GET', url=HOST + '/?Param2=value2&Param1=value1', **SUITE),
    dict(name='suite_query_order_encoded', method='GET',
         url=HOST + '/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1', **SUITE),
    dict(name='suite_query_unreserved', method='GET', url=f'{HOST}/?{UNRESERVED}={UNRESERVED}', **SUITE),
    dict(name='query_without_value', method='GET', url=HOST + '/?b&a=', **SUITE),
    dict(name='suite_post_vanilla', url=HOST + '/', **SUITE),
    dict(name='suite_post_query', url=HOST + '/?Param1=value1', **SUITE),
    dict(name='post_form', url=HOST + '/', headers=['Content-Type: application/x-www-form-urlencoded'],
         body='Param1=value1', **SUITE),
]
DEFAULTS = dict(now='2024-05-17T10:20:30Z', region='eu-central-1', service='autoscaling', key_id='AKIDEXAMPLE',
                secret='wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', token=None, method='POST', headers=[], body='')


def sign(row):
    now = datetime.datetime.strptime(row['now'], '%Y-%m-%dT%H:%M:%SZ')
    clock = types.SimpleNamespace(datetime=types.SimpleNamespace(utcnow=lambda: now))  # of older versions
    request = botocore.awsrequest.AWSRequest(method=row['method'], url=row['url'], data=row['body'].encode() or None)
    for line in row['headers']:
        request.headers.add_header(*line.split(':', 1))
    credentials = botocore.credentials.Credentials(row['key_id'], row['secret'], row['token'])
    with mock.patch('botocore.auth.datetime', clock), \
            mock.patch('botocore.auth.get_current_datetime', lambda: now, create=True):
        botocore.auth.SigV4Auth(credentials, row['service'], row['region']).add_auth(request)
    return request.headers['Authorization']


def main():
    rows = [{**DEFAULTS, **row} for row in ROWS]
    for row in rows:
        row['authorization'] = sign(row)
    print(json.dumps({'made_by': f'make_aws.py with botocore {botocore.__version__}', 'vectors': rows}, indent=1))


if __name__ == '__main__':
    main()
