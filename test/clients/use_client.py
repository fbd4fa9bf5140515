"""What a program does with the generated client: python use_client.py <base url> <key>. Prints JSON."""

import json
import sys
import time

import httpx
from stemwork_client import AuthenticatedClient
from stemwork_client.api.application_and_keys import get_application
from stemwork_client.api.files import get_upload_ticket
from stemwork_client.api.jobs import create_job, delete_job, get_job, list_jobs
from stemwork_client.api.workflows import list_workflows
from stemwork_client.models import JobRequest, JobStatus, ListJobsStatusItem, Problem, ServiceStemsVocalsAccompanimentParams

base_url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=key, prefix="")
workflow = "service/stems-vocals-accompaniment"

ticket = get_upload_ticket.sync(client=client)
httpx.put(ticket.upload_url, content=b"a song from Python").raise_for_status()
params = ServiceStemsVocalsAccompanimentParams(input_url=ticket.download_url)
created = create_job.sync(client=client, body=JobRequest(workflow=workflow, params=params, name="From Python"))
while (job := get_job.sync(created.id, client=client)).status not in (JobStatus.SUCCEEDED, JobStatus.FAILED):
    time.sleep(0.05)
unusable = ServiceStemsVocalsAccompanimentParams(input_url="x")
refused = create_job.sync(client=client, body=JobRequest(workflow=workflow, params=unusable))
vocals = httpx.get(job.result["vocals"]).text
listed = list_jobs.sync(client=client, status=[ListJobsStatusItem.SUCCEEDED])
deleted = delete_job.sync(created.id, client=client)
gone = get_job.sync(created.id, client=client)
wrong = get_application.sync(client=AuthenticatedClient(base_url=base_url, token="stw_wrong", prefix=""))

print(
    json.dumps(
        {
            "application": get_application.sync(client=client).name,
            "workflows": [each.id for each in list_workflows.sync(client=client).workflows],
            "job": [job.name, job.status, job.workflow.id, job.created_at.year > 2000],
            "vocals": vocals,
            "listed": [str(each.id) for each in listed] == [str(created.id)],
            "deleted": deleted.id == created.id,
            "problems": [[isinstance(each, Problem), each.code, each.message != ""] for each in (refused, gone, wrong)],
        }
    )
)
