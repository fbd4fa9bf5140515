import { useEffect, useMemo, useState } from 'preact/hooks'
import { isConfirmed, offlineClient, offlineDays, type OfflineSong, offlineSongs } from './offline-songs.js'
import { Results } from './results.js'
import { jobAddress, useRoute } from '../route.js'
import { sizeWords } from '../words/words.js'

/** The songs kept on this device, while the service cannot be reached. */
export function OfflinePage() {
  const route = useRoute()
  const [songs, setSongs] = useState<OfflineSong[]>()
  const [isOld, setOld] = useState(false)
  useEffect(() => {
    void isConfirmed().then(async (is) => {
      setOld(!is)
      setSongs(is ? await offlineSongs() : [])
    })
  }, [])
  if (isOld) return <p class="quiet">Kept songs play for {offlineDays} days without the service. That time is over.</p>
  if (!songs) return null
  const song = route.name === 'job' ? songs.find(({ job }) => job.id === route.id) : undefined
  if (song) return <Song key={song.job.id} song={song} />
  return (
    <section class="stack" aria-labelledby="kept-title">
      <h1 id="kept-title">On this device</h1>
      {route.name === 'job' && <p class="quiet">That song is not kept on this device. It needs the service.</p>}
      {songs.length === 0 && <p class="quiet">No songs are kept here. Playing a song needs the service.</p>}
      <ul class="rows" aria-label="Kept songs">
        {songs.map(({ job, bytes }) => (
          <li key={job.id}>
            <a class="name" dir="auto" href={jobAddress(job.id)}>
              {job.name ?? 'Untitled song'}
            </a>
            <span class="quiet">{sizeWords(bytes)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Song({ song }: { song: OfflineSong }) {
  const client = useMemo(() => offlineClient(song), [song])
  return (
    <article class="stack">
      <p class="screen">
        <a href="#/">← Songs on this device</a>
      </p>
      <h1 dir="auto">{song.job.name ?? 'Untitled song'}</h1>
      <Results client={client} job={song.job} isOffline />
    </article>
  )
}
