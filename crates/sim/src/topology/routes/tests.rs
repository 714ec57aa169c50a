use proptest::prelude::*;

use super::*;

fn edge(from: u16, to: u16, milliseconds: u64) -> Edge {
    Edge {
        from,
        to,
        delay: Span::from_millis(milliseconds),
    }
}

/// Ports in the order of links: one per end.
fn ports(nodes: usize, links: &[(Option<u16>, Option<u16>)], edges: &[Edge]) -> Vec<Vec<u16>> {
    let mut ports = vec![Vec::new(); nodes];
    for (there, back) in links {
        let named = there.or(*back).map(|index| edges[usize::from(index)]);
        let Some(named) = named else { continue };
        let ends = if there.is_some() {
            (named.from, named.to)
        } else {
            (named.to, named.from)
        };
        ports[usize::from(ends.0)].push(there.unwrap_or(u16::MAX));
        ports[usize::from(ends.1)].push(back.unwrap_or(u16::MAX));
    }
    ports
}

/// Reference: searches the whole network for each destination.
fn searched(map: &Map<'_>, destination: u16) -> Vec<Option<Port>> {
    let plain = vec![Vec::new(); map.ports.len()];
    let mut whole = Map {
        trees: Trees::none(map.ports.len()),
        arriving: plain,
        before: map.before.clone(),
        ..*map
    };
    for (index, edge) in map.edges.iter().enumerate() {
        whole.arriving[usize::from(edge.to)].push(index as u16);
    }
    whole.ports_towards(destination)
}

fn everywhere(nodes: u16) -> BTreeMap<u16, Vec<u16>> {
    (0..nodes).map(|node| (node, Vec::new())).collect()
}

/// Returns the port towards `destination` at each node.
fn towards(map: &Map<'_>, nodes: u16, destination: u16) -> Vec<Option<Port>> {
    let tables = map.tables(&everywhere(nodes)).expect("small");
    let port = |table: &Routes| table.port_towards(Address(destination));
    tables.iter().map(port).collect()
}

#[test]
fn one_way_links_give_routes_in_one_direction_only() {
    // Satellite 0 -> 1, modem 1 -> 2 -> 0.
    let edges = [edge(0, 1, 250), edge(1, 2, 20), edge(2, 0, 20)];
    let ports = [vec![0, u16::MAX], vec![u16::MAX, 1], vec![u16::MAX, 2]];
    let map = Map::new(&ports, &edges, &[true; 3]);
    assert_eq!(towards(&map, 3, 1), [Some(Port(0)), None, Some(Port(1))]);
    assert_eq!(towards(&map, 3, 0), [None, Some(Port(1)), Some(Port(1))]);
}

#[test]
fn routes_of_equal_hop_count_prefer_the_lower_delay_and_unreachable_nodes_have_none() {
    let edges = [
        edge(0, 1, 250),
        edge(0, 2, 10),
        edge(1, 3, 10),
        edge(2, 3, 10),
    ];
    let ports = [
        vec![0, 1],
        vec![u16::MAX, 2],
        vec![u16::MAX, 3],
        vec![u16::MAX, u16::MAX],
    ];
    let map = Map::new(&ports, &edges, &[true; 4]);
    assert_eq!(
        towards(&map, 4, 3),
        [Some(Port(1)), Some(Port(1)), Some(Port(1)), None]
    );
}

#[test]
fn no_path_leads_through_a_host() {
    // 0 - 1 - 2 over the host 1; 0 - 3 - 4 - 2 over the routers 3 and 4.
    let edges = [
        edge(0, 1, 1),
        edge(1, 2, 1),
        edge(0, 3, 1),
        edge(3, 4, 1),
        edge(4, 2, 1),
    ];
    let ports = [
        vec![0, 2],
        vec![u16::MAX, 1],
        vec![],
        vec![u16::MAX, 3],
        vec![u16::MAX, 4],
    ];
    let map = Map::new(&ports, &edges, &[false, false, false, true, true]);
    assert_eq!(towards(&map, 5, 2)[0], Some(Port(1)));
}

#[test]
fn routes_of_ten_thousand_users_need_one_search_and_one_step_each() {
    // Server 0 and hub 1; terminals 2, 4, ... at the hub, each with a user behind it.
    const USERS: u16 = 10_000;
    let mut edges = Vec::new();
    let mut links = Vec::new();
    let mut link = |a: u16, b: u16| {
        let first = edges.len() as u16;
        edges.extend([edge(a, b, 1), edge(b, a, 1)]);
        links.push((Some(first), Some(first + 1)));
    };
    link(0, 1);
    for user in 0..USERS {
        link(1, 2 + 2 * user);
        link(2 + 2 * user, 3 + 2 * user);
    }
    let nodes = 2 + 2 * USERS;
    let mut forwards = vec![true; usize::from(nodes)];
    forwards[0] = false;
    for user in 0..usize::from(USERS) {
        forwards[3 + 2 * user] = false;
    }
    let ports = ports(usize::from(nodes), &links, &edges);
    let map = Map::new(&ports, &edges, &forwards);
    let core = (0..nodes).filter(|node| !map.trees.is_hanging(*node));
    assert_eq!(core.count(), 1);
    let mut destinations: BTreeMap<u16, Vec<u16>> =
        (0..USERS).map(|user| (3 + 2 * user, vec![0])).collect();
    destinations.insert(0, (0..USERS).map(|user| 3 + 2 * user).collect());
    let tables = map.tables(&destinations).expect("not too large");
    let last = Address(nodes - 1);
    assert_eq!(tables[1].port_towards(last), Some(Port(USERS)));
    assert_eq!(
        tables[usize::from(nodes) - 2].port_towards(last),
        Some(Port(1))
    );
    assert_eq!(
        tables[usize::from(nodes) - 2].port_towards(Address(0)),
        Some(Port(0))
    );
}

proptest! {
    /// Paths through trees equal those of a full search.
    #[test]
    fn routes_with_tree_shortcuts_equal_a_full_search(
        kinds in prop::collection::vec(prop::bool::weighted(0.7), 2..9),
        drawn in prop::collection::vec((any::<u16>(), any::<u16>(), 1_u64..4, 0_u8..8), 1..14),
        hanging in prop::collection::vec((any::<u16>(), 1_u64..4, any::<bool>()), 0..8),
    ) {
        let mut forwards = kinds;
        let mut edges = Vec::new();
        let mut links = Vec::new();
        let mut add = |from: u16, to: u16, delay: u64, ways: u8| {
            let index = edges.len() as u16;
            let there = (ways != 0).then_some(index);
            edges.extend(there.map(|_| edge(from, to, delay)));
            let next = edges.len() as u16;
            let back = (ways != 1).then_some(next);
            edges.extend(back.map(|_| edge(to, from, delay)));
            links.push((there, back));
        };
        let first = forwards.len() as u16;
        for (from, to, delay, ways) in drawn {
            if from % first != to % first {
                add(from % first, to % first, delay, ways);
            }
        }
        for (on, delay, forward) in hanging {
            let node = forwards.len() as u16;
            add(on % node, node, delay, 2);
            forwards.push(forward);
        }
        let nodes = forwards.len() as u16;
        let ports = ports(forwards.len(), &links, &edges);
        let map = Map::new(&ports, &edges, &forwards);
        for destination in 0..nodes {
            let right = searched(&map, destination);
            let tables = towards(&map, nodes, destination);
            for node in 0..nodes {
                let pair = |a, b| BTreeMap::from([(b, vec![a])]);
                let right = right[usize::from(node)];
                let cut_off = map.tables(&pair(node, destination)).is_err();
                prop_assert_eq!(cut_off, right.is_none(), "{} to {}", node, destination);
                if right.is_some() {
                    prop_assert_eq!(tables[usize::from(node)], right, "{} to {}", node, destination);
                }
            }
        }
    }
}
