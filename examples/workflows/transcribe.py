import json
import whisper
from stemwork_program import Job

job = Job()
result = whisper.load_model(job.params["model"]).transcribe(job.inputs["inputUrl"])
if not result["text"].strip():
    job.bad_input("The recording has no speech. Send one that has.")
job.detail("language", result["language"])
json.dump(result, open(job.outputs["text"], "w"))
