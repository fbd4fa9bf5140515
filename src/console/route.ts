import { useEffect, useState } from 'preact/hooks'

/** What the page shows. It is kept in the address, so a reload or a link comes back to it. */
export type Route = { name: 'home' } | { name: 'job'; id: string }

export function jobAddress(id: string): string {
  return `#/job/${id}`
}

export function useRoute(): Route {
  const [route, setRoute] = useState(routeOf(location.hash))
  useEffect(() => {
    const onChange = () => setRoute(routeOf(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}

function routeOf(hash: string): Route {
  const id = /^#\/job\/([0-9a-f-]+)$/i.exec(hash)?.[1]
  return id === undefined ? { name: 'home' } : { name: 'job', id }
}
