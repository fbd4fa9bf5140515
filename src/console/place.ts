import { useEffect, useState } from 'preact/hooks'

/** What the page shows. It is kept in the address, so a reload or a link comes back to it. */
export type Place = { name: 'home' } | { name: 'job'; id: string }

export function jobAddress(id: string): string {
  return `#/job/${id}`
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeOf(location.hash))
  useEffect(() => {
    const onChange = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return place
}

function placeOf(hash: string): Place {
  const id = /^#\/job\/([0-9a-f-]+)$/i.exec(hash)?.[1]
  return id === undefined ? { name: 'home' } : { name: 'job', id }
}
