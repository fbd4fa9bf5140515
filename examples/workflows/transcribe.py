import json
import subprocess
import whisper
from stemwork_program import Job

job = Job()
formats = "mov,matroska,avi,mpegts,mp3,aac,wav,flac,ogg"  # no playlists, which Whisper would follow
decode = ["ffmpeg", "-nostdin", "-format_whitelist", formats, "-i", job.inputs["inputUrl"], "-vn", "sound.wav"]
if subprocess.run(decode).returncode != 0:
    job.bad_input("The recording cannot be decoded. Send MP3, M4A, WAV, FLAC or Ogg.")
result = whisper.load_model(job.params["model"]).transcribe("sound.wav")
if not result["text"].strip():
    job.bad_input("The recording has no speech. Send one that has.")
job.detail("language", result["language"])
json.dump(result, open(job.outputs["text"], "w"))
