"""What a program does with the official client: python use_musicai.py <base url> <key> <song> <folder>. Prints JSON."""

import json
import os
import sys

from musicai_sdk import MusicAiClient
from requests.exceptions import HTTPError

base_url, key, song, folder = sys.argv[1:]
client = MusicAiClient(key, job_monitor_interval=0.02)
client.base_url = base_url
workflow = "music-ai/stems-vocals-accompaniment"

input_url = client.upload_file(song)
created = client.add_job("song", workflow, {"inputUrl": input_url}, metadata={"album": "first"})["id"]
job = client.wait_for_job_completion(created)
place = os.path.join(folder, "python", "vocals.wav")
client.download_file(job["result"]["vocals"], place)
with open(place, encoding="utf-8") as file:
    vocals = file.read()
listed = client.list_jobs({"workflow": [workflow], "status": ["SUCCEEDED"]})
try:
    client.add_job("song", "music-ai/none", {})
    refused = None
except HTTPError as error:
    refused = str(error)

print(
    json.dumps(
        {
            "job": [job["status"], job["workflow"]["id"], job["metadata"]],
            "vocals": vocals,
            "listed": [each["id"] for each in listed] == [created],
            "workflows": [each["id"] for each in client.list_workflows()["workflows"]],
            "application": client.get_application_info()["name"],
            "deleted": client.delete_job(created) == {"id": created},
            "refused": refused,
        }
    )
)
